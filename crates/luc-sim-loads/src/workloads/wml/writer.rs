//! The tasks of a process that do its asynchronous writes.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::world::World;
use crate::script::Task;
use luc_sim::processors::TaskId;
use luc_sim::program::Op;

/// Runs a writing task of a process.
pub async fn write(task: Task, number: TaskId, process: usize, world: Arc<World>) {
    // Its first write starts it.
    task.call(Op::Park).await;
    loop {
        let next = {
            let pool = &mut world.state().pools[process];
            let next = pool.requests.take();
            if next.is_none() {
                pool.idle.push_back(number);
            }
            next
        };
        let Some((file, request)) = next else {
            task.call(Op::Park).await;
            continue;
        };
        let begin_ns = task.now_ns();
        let (at, bytes) = (request.at, request.bytes);
        task.call(Op::Use(world.file(request.entry))).await;
        let mut end_ns = task.call(Op::WriteAt { at, bytes }).await.ended_ns;
        if request.is_synced {
            end_ns = task.call(Op::SyncRange { at, bytes }).await.ended_ns;
        }
        request.ticket.store(false, Ordering::Relaxed);
        world.wrote(request.entry, at + u64::from(bytes));
        {
            let mut state = world.state();
            if request.is_synced && world.measures(end_ns) {
                state.written.record(end_ns - begin_ns);
            }
            state.pools[process].requests.ended(file);
        }
        for waiting in world.writing[process].take() {
            task.call(Op::Wake(waiting)).await;
        }
    }
}
