# varmail: a mail server that keeps each message in a file of its own.
#
# Threads go round the same loop: remove a message, deliver a new one and make
# it durable, read a message and append to it durably, read another. Two
# fsyncs of small files per round make it a test of how the file system
# commits its journal.
#
#   $dir             directory that the files are made in
#   $nfiles          how many messages there can be; 80 % exist at the start
#   $meandirwidth    mean number of entries per directory; so large a number
#                    puts all messages into one
#   $filesize        size of the messages that exist at the start
#   $nthreads        threads that work on the messages
#   $iosize          how much a read asks for at a time
#   $meanappendsize  an append writes less than this, drawn anew each time
#   $runtime         seconds

set $dir=/tmp
set $nfiles=1000
set $meandirwidth=1000000
set $filesize=cvar(type=cvar-gamma,parameters=mean:16384;gamma:1.5)
set $nthreads=16
set $iosize=1m
set $meanappendsize=16k
set $runtime=60

define fileset name=messages,
               path=$dir,
               entries=$nfiles,
               dirwidth=$meandirwidth,
               size=$filesize,
               prealloc=80

define process name=mailserver {
    thread name=worker, instances=$nthreads, memsize=10m {
        # A message goes away.
        flowop deletefile     name=expunge, filesetname=messages

        # One is delivered.
        flowop createfile     name=deliver, filesetname=messages, fd=1
        flowop appendfilerand name=deliver-write, iosize=$meanappendsize, fd=1
        flowop fsync          name=deliver-sync, fd=1
        flowop closefile      name=deliver-close, fd=1

        # One is read and marked.
        flowop openfile       name=mark, filesetname=messages, fd=1
        flowop readwholefile  name=mark-read, iosize=$iosize, fd=1
        flowop appendfilerand name=mark-write, iosize=$meanappendsize, fd=1
        flowop fsync          name=mark-sync, fd=1
        flowop closefile      name=mark-close, fd=1

        # One is read.
        flowop openfile       name=fetch, filesetname=messages, fd=1
        flowop readwholefile  name=fetch-read, iosize=$iosize, fd=1
        flowop closefile      name=fetch-close, fd=1
    }
}

run $runtime
