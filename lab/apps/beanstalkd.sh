# beanstalkd, a work queue whose log is synced before each answer. Each client puts a job, takes
# one, and deletes it: two answers that are synced.
PORT=23793
free $PORT
room 64
mkdir "$DIR/log"
for_nobody "$DIR/log"
# A shell would send a command line by line, and wait for TCP in between. The roots have no modules
# of Perl; 228 is clock_gettime on x86-64, whose clock 1 is the monotonic one.
cat >"$TMP/client" <<'END'
my ($port, $seconds) = @ARGV;
sub now_us() {
	syscall(228, 1, my $time = "\0" x 16);
	my ($s, $ns) = unpack "qq", $time;
	$s * 1e6 + $ns / 1e3;
}
sub ask {
	my ($command, $expected) = @_;
	syswrite S, $command;
	(my $said = <S> // "nothing") =~ s/\s+$//;
	$said =~ /^$expected\b/ or die "beanstalkd answers $said\n";
	$said;
}
socket(S, 2, 1, 6) && connect(S, pack("S n C4 x8", 2, $port, 127, 0, 0, 1)) or
	die "cannot connect: $!\n";
for (my $end = now_us + $seconds * 1e6; (my $begin = now_us) < $end;) {
	ask("put 0 0 60 256\r\n" . "j" x 256 . "\r\n", "INSERTED");
	printf "%d\n", now_us - $begin;
	my (undef, $id) = split / /, ask("reserve\r\n", "RESERVED");
	<S>;
	ask("delete $id\r\n", "DELETED");
}
END
server() { as_nobody $WITH beanstalkd -l 127.0.0.1 -p $PORT -b "$DIR/log" -f 0; }
serve beanstalkd server
await beanstalkd perl "$TMP/client" $PORT 0
echo begin
begin=$(now_ms)
clients=
number=0
while [ $number -lt "$CLIENTS" ]; do
	perl "$TMP/client" $PORT "$TIME_S" >"$TMP/times.$number" 2>"$TMP/error.$number" &
	clients="$clients $!"
	number=$((number + 1))
done
for pid in $clients; do
	wait "$pid" || failed "$(cat "$TMP"/error.* "$TMP/beanstalkd.log" | tail -n 1)"
done
end=$(now_ms)
echo end
jobs=$(cat "$TMP"/times.* | wc -l)
echo "jobs_per_s $(per_s "$jobs" $((end - begin)))"
sort -n "$TMP"/times.* |
	mawk -v at=$(((jobs * 99 + 99) / 100)) 'NR == at { printf "answer_p99_ms %.3f\n", $1 / 1000 }'
