# shared-files: threads that share a few files and sync them all.
#
# Each thread goes round the same loop: it writes ten blocks at random places
# of eight files, then it makes all eight durable. As all threads write the
# same files, most of these syncs find that another thread's sync was enough.
#
#   $dir       directory that the files are made in
#   $filesize  size of a file
#   $iosize    how much a write changes
#   $nthreads  threads that work on the files
#   $runtime   seconds

set $dir=/tmp
set $filesize=4m
set $iosize=16k
set $nthreads=8
set $runtime=60

define fileset name=table,
               path=$dir,
               entries=8,
               dirwidth=1024,
               size=$filesize,
               prealloc=100,
               reuse

define process name=sharer {
    thread name=sharer, instances=$nthreads, memsize=1m {
        flowop write    name=change-1, filesetname=table, fd=1, indexed=0, iosize=$iosize, random, iters=2
        flowop write    name=change-2, filesetname=table, fd=2, indexed=1, iosize=$iosize, random
        flowop write    name=change-3, filesetname=table, fd=3, indexed=2, iosize=$iosize, random
        flowop write    name=change-4, filesetname=table, fd=4, indexed=3, iosize=$iosize, random
        flowop write    name=change-5, filesetname=table, fd=5, indexed=4, iosize=$iosize, random, iters=2
        flowop write    name=change-6, filesetname=table, fd=6, indexed=5, iosize=$iosize, random
        flowop write    name=change-7, filesetname=table, fd=7, indexed=6, iosize=$iosize, random
        flowop write    name=change-8, filesetname=table, fd=8, indexed=7, iosize=$iosize, random
        flowop fsyncset name=sync, filesetname=table
    }
}

run $runtime
