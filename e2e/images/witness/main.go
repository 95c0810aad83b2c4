// Command witness is a workload for tests. It tells over HTTP who it is and
// which files it sees, so that a test can compare a pod with its checkpoint.
//
// It exits with status 1 at once when it can't bind, like a real server whose
// port is taken, and with status 0 at SIGTERM.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/witness"
)

func main() {
	listen := flag.String("listen", ":8080", "address to serve HTTP on")
	flag.Parse()
	if err := serve(*listen); err != nil {
		fmt.Fprintln(os.Stderr, "witness:", err)
		os.Exit(1)
	}
}

func serve(address string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	started := time.Now()
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(witness.Testify(started, r.URL.Query()["dir"]))
	})}
	go func() {
		<-ctx.Done()
		server.Close()
	}()
	fmt.Println("witness: serving on", listener.Addr())
	if err := server.Serve(listener); err != http.ErrServerClosed {
		return err
	}
	return nil
}
