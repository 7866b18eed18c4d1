# neighbours: workers that append and sync, beside tasks that only compute.
#
# The tasks beside them keep processors busy, but wait for no commit: however
# busy the processors are, the workers wait for the journal.
#
#   $dir       directory that the files are made in
#   $nfiles    number of files
#   $nthreads  number of workers
#   $hogs      number of tasks that only compute
#   $iosize    size of a result
#   $runtime   seconds

set $dir=/tmp
set $nfiles=1000
set $nthreads=16
set $hogs=1
set $iosize=4k
set $runtime=60

define fileset name=results,
               path=$dir,
               entries=$nfiles,
               dirwidth=100,
               size=4k,
               prealloc=100

define process name=workers {
    thread name=worker, instances=$nthreads, memsize=10m {
        flowop openfile   name=take, filesetname=results, fd=1
        flowop appendfile name=store, iosize=$iosize, fd=1
        flowop fsync      name=store-sync, fd=1
        flowop closefile  name=store-close, fd=1
    }
}

define process name=neighbours {
    thread name=hog, instances=$hogs, memsize=1m {
        flowop hog        name=compute, value=1000000
    }
}

run $runtime
