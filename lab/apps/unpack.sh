# tar unpacks an image, in rounds.
image 1000
unpack() {
	[ $round = 1 ] || rm -r "$DIR/$((round - 1))"
	mkdir "$DIR/$round"
	run tar $WITH tar -C "$DIR/$round" -xf "$TMP/image.tar"
	[ "$SYNC" = no ] || run sync $WITH sync -f "$DIR"
}
rounds files_per_s 1000 unpack
