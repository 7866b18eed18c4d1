# open-loop: durable messages that arrive at a rate of their own.
#
# A message arrives, one of the threads writes it to a file of its own and makes
# it durable, and the oldest goes away. Unlike the other loads it does not do
# more when the file system gets faster: what changes is how long a message
# waits, and how much energy the machine takes meanwhile.
#
#   $dir       directory that the files are made in
#   $nfiles    how many messages there can be; half exist at the start
#   $nthreads  threads that take messages
#   $rate      messages per second, of all threads together; they should be
#              able to do more, or they fall behind
#   $filesize  size of a message
#   $runtime   seconds

set $dir=/tmp
set $nfiles=4096
set $nthreads=16
set $rate=100
set $filesize=4k
set $runtime=60

define fileset name=messages,
               path=$dir,
               entries=$nfiles,
               dirwidth=$nfiles,
               size=$filesize,
               prealloc=50

define process name=queue {
    thread name=taker, instances=$nthreads, memsize=10m {
        flowop eventlimit     name=arrive
        flowop createfile     name=store, filesetname=messages, fd=1
        flowop writewholefile name=store-write, iosize=$filesize, fd=1
        flowop fsync          name=store-sync, fd=1
        flowop closefile      name=store-close, fd=1
        flowop deletefile     name=expire, filesetname=messages
    }
}

eventgen rate=$rate
run $runtime
