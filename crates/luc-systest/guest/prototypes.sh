# Hooks read arguments by their places. Where no header declares a function, the kernel's
# type information tells its parameters; kmod/layout.c asserts the rest.
. /t/lib.sh

is "prototype of ext4_sync_file" "int(struct file *, loff_t, loff_t, int)" \
	"$(/t/prototype ext4_sync_file)"
is "prototype of wait_transaction_locked" "void(journal_t *)" \
	"$(/t/prototype wait_transaction_locked)"
check 1 "prototype: no_such_function: *" /t/prototype no_such_function
finish
