# webserver: a web server that reads whole pages and keeps a log.
#
# Threads go round the same loop: ten pages are opened, read and closed one
# after the other, then a line is appended to the log that all threads share.
# Nothing is made durable.
#
#   $dir             directory that the files are made in
#   $nfiles          pages
#   $meandirwidth    mean number of entries per directory
#   $filesize        size of the pages, and of the log at the start
#   $nthreads        threads that serve pages
#   $iosize          how much a read asks for at a time
#   $meanappendsize  an append writes less than this, drawn anew each time
#   $runtime         seconds

set $dir=/tmp
set $nfiles=1000
set $meandirwidth=20
set $filesize=cvar(type=cvar-gamma,parameters=mean:16384;gamma:1.5)
set $nthreads=100
set $iosize=1m
set $meanappendsize=16k
set $runtime=60

define fileset name=pages,
               path=$dir,
               entries=$nfiles,
               dirwidth=$meandirwidth,
               size=$filesize,
               prealloc=100,
               readonly

define fileset name=log,
               path=$dir,
               entries=1,
               dirwidth=$meandirwidth,
               size=$filesize,
               prealloc

define process name=webserver {
    thread name=worker, instances=$nthreads, memsize=10m {
        flowop openfile       name=open1, filesetname=pages, fd=1
        flowop readwholefile  name=read1, iosize=$iosize, fd=1
        flowop closefile      name=close1, fd=1

        flowop openfile       name=open2, filesetname=pages, fd=1
        flowop readwholefile  name=read2, iosize=$iosize, fd=1
        flowop closefile      name=close2, fd=1

        flowop openfile       name=open3, filesetname=pages, fd=1
        flowop readwholefile  name=read3, iosize=$iosize, fd=1
        flowop closefile      name=close3, fd=1

        flowop openfile       name=open4, filesetname=pages, fd=1
        flowop readwholefile  name=read4, iosize=$iosize, fd=1
        flowop closefile      name=close4, fd=1

        flowop openfile       name=open5, filesetname=pages, fd=1
        flowop readwholefile  name=read5, iosize=$iosize, fd=1
        flowop closefile      name=close5, fd=1

        flowop openfile       name=open6, filesetname=pages, fd=1
        flowop readwholefile  name=read6, iosize=$iosize, fd=1
        flowop closefile      name=close6, fd=1

        flowop openfile       name=open7, filesetname=pages, fd=1
        flowop readwholefile  name=read7, iosize=$iosize, fd=1
        flowop closefile      name=close7, fd=1

        flowop openfile       name=open8, filesetname=pages, fd=1
        flowop readwholefile  name=read8, iosize=$iosize, fd=1
        flowop closefile      name=close8, fd=1

        flowop openfile       name=open9, filesetname=pages, fd=1
        flowop readwholefile  name=read9, iosize=$iosize, fd=1
        flowop closefile      name=close9, fd=1

        flowop openfile       name=open10, filesetname=pages, fd=1
        flowop readwholefile  name=read10, iosize=$iosize, fd=1
        flowop closefile      name=close10, fd=1

        flowop appendfilerand name=append-log, filesetname=log,
                              iosize=$meanappendsize, fd=2
    }
}

run $runtime
