//! The tasks of a process that do its asynchronous writes.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::shared::Shared;
use crate::script::Task;
use luc_sim::files::FileId;
use luc_sim::processors::TaskId;
use luc_sim::program::Op;

/// Runs a writing task of a process.
pub async fn write(task: Task, number: TaskId, process: usize, shared: Arc<Shared>) {
    // Its first write starts it.
    task.call(Op::Park).await;
    loop {
        let next = shared.state().pools[process].next(number);
        let Some((at, request)) = next else {
            task.call(Op::Park).await;
            continue;
        };
        let begin_ns = task.now_ns();
        let set = &shared.sets[request.set];
        let file: FileId = set.first_file + request.index;
        let (offset, bytes) = (request.at, request.bytes);
        task.call(Op::Use(file)).await;
        let op = Op::WriteAt { at: offset, bytes };
        let mut end_ns = task.call(op).await.ended_ns;
        if request.is_synced {
            let op = Op::SyncRange { at: offset, bytes };
            end_ns = task.call(op).await.ended_ns;
        }
        request.ticket.store(true, Ordering::Relaxed);
        let waiting = {
            let mut state = shared.state();
            let length = &mut state.bytes[request.set][request.index as usize];
            *length = (*length).max(offset + u64::from(bytes));
            if request.is_synced && shared.measures(end_ns) {
                state.dsync.record(end_ns - begin_ns);
            }
            state.pools[process].ended(at)
        };
        for waiting in waiting {
            task.call(Op::Wake(waiting)).await;
        }
    }
}
