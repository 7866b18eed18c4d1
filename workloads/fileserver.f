# fileserver: a file server's home directories.
#
# Threads go round the same loop: a file is made and written, one is appended
# to, one is read whole, one is removed, one is looked at. Nothing is made
# durable.
#
#   $dir             directory that the files are made in
#   $nfiles          how many files there can be; 80 % exist at the start
#   $meandirwidth    mean number of entries per directory
#   $filesize        size of a file when it is written whole
#   $nthreads        threads that work on the files
#   $iosize          how much a read or a write of a whole file moves at a time
#   $meanappendsize  an append writes less than this, drawn anew each time
#   $runtime         seconds

set $dir=/tmp
set $nfiles=10000
set $meandirwidth=20
set $filesize=cvar(type=cvar-gamma,parameters=mean:131072;gamma:1.5)
set $nthreads=50
set $iosize=1m
set $meanappendsize=16k
set $runtime=60

define fileset name=homes,
               path=$dir,
               entries=$nfiles,
               dirwidth=$meandirwidth,
               size=$filesize,
               prealloc=80

define process name=fileserver {
    thread name=worker, instances=$nthreads, memsize=10m {
        flowop createfile     name=store, filesetname=homes, fd=1
        flowop writewholefile name=store-write, iosize=$iosize, fd=1, srcfd=1
        flowop closefile      name=store-close, fd=1

        flowop openfile       name=extend, filesetname=homes, fd=1
        flowop appendfilerand name=extend-write, iosize=$meanappendsize, fd=1
        flowop closefile      name=extend-close, fd=1

        flowop openfile       name=fetch, filesetname=homes, fd=1
        flowop readwholefile  name=fetch-read, iosize=$iosize, fd=1
        flowop closefile      name=fetch-close, fd=1

        flowop deletefile     name=remove, filesetname=homes
        flowop statfile       name=look, filesetname=homes
    }
}

run $runtime
