# Postfix takes mail from smtp-source, in a session for each client, and virtual(8) puts it into
# ten maildirs. Postfix syncs each message twice: in its queue before it answers, and in the
# maildir.
PORT=23792
[ "$(id -u)" = 0 ] || failed "Postfix starts only as root"
for user in postfix nobody; do
	id "$user" >/dev/null 2>&1 || failed "there is no user $user, whom Postfix needs"
done
PATH=$PATH:/usr/lib/postfix/sbin
room 32
etc=$TMP/etc
queue=$DIR/queue
mail=$DIR/mail
mkdir "$etc" "$TMP/data" "$mail" "$queue"
owned="active bounce corrupt defer deferred flush hold incoming private public saved trace"
for folder in $owned; do
	mkdir "$queue/$folder"
	chown postfix "$queue/$folder"
done
mkdir "$queue/maildrop" "$queue/pid"
chown postfix "$TMP/data"
chown 65534:65534 "$mail"
cat >"$etc/main.cf" <<END
compatibility_level = 3.6
queue_directory = $queue
data_directory = $TMP/data
maillog_file = $TMP/postfix.log
maillog_file_prefixes = $TMP
myhostname = luc.test
mydestination =
inet_interfaces = loopback-only
inet_protocols = ipv4
mynetworks = 127.0.0.0/8
smtpd_peername_lookup = no
fast_flush_domains =
alias_maps =
local_recipient_maps =
in_flow_delay = 0
virtual_mailbox_domains = boxes.test
virtual_mailbox_maps = regexp:$etc/boxes
virtual_mailbox_base = $mail
virtual_uid_maps = static:65534
virtual_gid_maps = static:65534
END
cat >"$etc/master.cf" <<END
127.0.0.1:$PORT inet n - n - - smtpd
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
proxymap unix - - n - - proxymap
error unix - - n - - error
retry unix - - n - - error
virtual unix - n n - - virtual
anvil unix - - n - 1 anvil
postlog unix-dgram n - n - 1 postlogd
END
# smtp-source numbers the addresses, and the last digit chooses the maildir.
for digit in 0 1 2 3 4 5 6 7 8 9; do echo "/${digit}box@/ $digit/"; done >"$etc/boxes"

source="-4 -N -l 4096 -f from@luc.test -t box@boxes.test"
delivered() { find "$mail" -path '*/new/*' -type f | wc -l; }
drain() {
	while [ -n "$(find "$queue/incoming" "$queue/active" -type f)" ]; do
		kill -0 "$SERVER" 2>/dev/null ||
			failed "Postfix ended early: $(reason "$TMP/postfix.log")"
		sleep 0.05
	done
	! grep -qE 'status=(bounced|deferred)' "$TMP/postfix.log" ||
		failed "Postfix cannot deliver: $(grep -m 1 -E 'status=(bounced|deferred)' "$TMP/postfix.log")"
}

free $PORT
serve postfix $WITH master -c "$etc"
await postfix smtp-source $source 127.0.0.1:$PORT
drain
# Every client's processes start before the measurement.
run smtp-source smtp-source $source -d -s "$CLIENTS" -m $((CLIENTS * 10)) 127.0.0.1:$PORT
drain
before=$(delivered)
echo begin
begin=$(now_ms)
timeout "$TIME_S" smtp-source $source -d -s "$CLIENTS" -m 100000000 127.0.0.1:$PORT \
	>"$TMP/source.log" 2>&1
[ $? = 124 ] || failed "smtp-source: $(reason "$TMP/source.log")"
drain
end=$(now_ms)
echo end
echo "messages_per_s $(per_s $(($(delivered) - before)) $((end - begin)))"
