package watch

// Mailbox carries facts from a source to the loop without ever making the source wait: it holds one value, and a newer
// one is merged into it.
type Mailbox[T any] struct {
	slot  chan T
	merge func(older, newer T) T
}

// NewMailbox makes a mailbox in which the latest value replaces the one before.
func NewMailbox[T any]() Mailbox[T] {
	return NewMergingMailbox(func(_, newer T) T { return newer })
}

// NewMergingMailbox makes a mailbox that joins values which the loop has not taken yet.
func NewMergingMailbox[T any](merge func(older, newer T) T) Mailbox[T] {
	return Mailbox[T]{slot: make(chan T, 1), merge: merge}
}

// Put never blocks. It is for one goroutine at a time.
func (m Mailbox[T]) Put(value T) {
	for {
		select {
		case m.slot <- value:
			return
		default:
		}
		select {
		case older := <-m.slot:
			value = m.merge(older, value)
		default: // the loop took it in between
		}
	}
}
