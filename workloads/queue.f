# queue: workers that compute between their syncs.
#
# Each worker goes round the same loop: it works on a message, appends the
# result to a file and makes it durable. The more it computes, the more the
# processors are the bottleneck: then a commit is best written while other
# workers compute, and nothing is won by waiting for them.
#
#   $dir       directory that the files are made in
#   $nfiles    number of files
#   $nthreads  number of workers
#   $compute   how much a message takes: the argument of hog, which writes as
#              many bytes to memory; 1500000 are some 11 ms at 1000 MIPS
#   $iosize    size of a result
#   $runtime   seconds

set $dir=/tmp
set $nfiles=1000
set $nthreads=8
set $compute=1500000
set $iosize=4k
set $runtime=60

define fileset name=results,
               path=$dir,
               entries=$nfiles,
               dirwidth=100,
               size=4k,
               prealloc=100

define process name=queue {
    thread name=worker, instances=$nthreads, memsize=10m {
        flowop hog        name=work, value=$compute
        flowop openfile   name=take, filesetname=results, fd=1
        flowop appendfile name=store, iosize=$iosize, fd=1
        flowop fsync      name=store-sync, fd=1
        flowop closefile  name=store-close, fd=1
    }
}

run $runtime
