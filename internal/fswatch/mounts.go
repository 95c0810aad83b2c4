package fswatch

import "os"

// mountTable is what the kernel tells by, as by a socket with news, that the mounts of this process have changed: see
// proc_pid_mountinfo(5).
const mountTable = "/proc/self/mountinfo"

type mounts struct {
	changed chan struct{}
	table   *os.File
	ended   chan struct{}
}

func watchMounts() (*mounts, error) {
	table, err := os.Open(mountTable)
	if err != nil {
		return nil, err
	}
	conn, err := table.SyscallConn()
	if err != nil {
		table.Close()
		return nil, err
	}
	m := &mounts{changed: make(chan struct{}, 1), table: table, ended: make(chan struct{})}
	go func() {
		defer close(m.ended)
		_ = conn.Read(func(uintptr) bool { // until the file is closed
			select {
			case m.changed <- struct{}{}:
			default:
			}
			return false
		})
	}()
	return m, nil
}

func (m *mounts) close() error {
	err := m.table.Close()
	<-m.ended
	return err
}
