# oltp: a database with many readers, some writers and one log.
#
# Readers fetch small blocks at random places and think. Each block that is
# read counts one towards the next round of the log writer and of every
# database writer; these write durably, the log in large blocks and the data
# in many small ones that are under way together.
#
#   $dir           directory that the files are made in
#   $nfiles        data files
#   $filesize      size of a data file
#   $nlogfiles     log files
#   $logfilesize   size of a log file
#   $iosize        block of the database, for readers and writers
#   $logiosize     block of the log
#   $workingset    use only the first N bytes of a data file; 0: all
#   $nshadows      readers, one process each
#   $ndbwriters    database writers, one process each
#   $usermode      how long a reader thinks: turns of an empty loop
#   $memperthread  memory that each thread does its I/O from
#   $directio      1: pass the page cache by
#   $eventrate     reads per second of all readers together; 0: no limit
#   $runtime       seconds

set $dir=/tmp
set $nfiles=10
set $filesize=10m
set $nlogfiles=1
set $logfilesize=10m
set $iosize=2k
set $logiosize=256k
set $workingset=0
set $nshadows=200
set $ndbwriters=10
set $usermode=200000
set $memperthread=1m
set $directio=0
set $eventrate=0
set $runtime=60

eventgen rate=$eventrate

define fileset name=data,
               path=$dir,
               entries=$nfiles,
               dirwidth=1024,
               size=$filesize,
               prealloc=100,
               reuse

define fileset name=log,
               path=$dir,
               entries=$nlogfiles,
               dirwidth=1024,
               size=$logfilesize,
               prealloc=100,
               reuse

define process name=logwriter {
    thread name=logwriter, memsize=$memperthread, useism {
        flowop aiowrite name=log-write, filesetname=log, iosize=$logiosize,
                        random, directio=$directio, dsync
        flowop aiowait  name=log-wait
        flowop semblock name=log-turn, value=3200, highwater=1000
    }
}

define process name=dbwriter, instances=$ndbwriters {
    thread name=dbwriter, memsize=$memperthread, useism {
        flowop aiowrite name=data-write, filesetname=data, iosize=$iosize,
                        workingset=$workingset, random, iters=100, opennext,
                        directio=$directio, dsync
        flowop hog      name=data-prepare, value=10000
        flowop semblock name=data-turn, value=1000, highwater=2000
        flowop aiowait  name=data-wait
    }
}

define process name=reader, instances=$nshadows {
    thread name=reader, memsize=$memperthread, useism {
        flowop read       name=data-read, filesetname=data, iosize=$iosize,
                          workingset=$workingset, random, opennext,
                          directio=$directio
        flowop hog        name=think, value=$usermode
        flowop sempost    name=post-log, value=1, target=log-turn, blocking
        flowop sempost    name=post-data, value=1, target=data-turn, blocking
        flowop eventlimit name=pace
    }
}

run $runtime
