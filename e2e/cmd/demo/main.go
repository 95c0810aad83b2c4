//go:build linux

// Command demo brings up a real node with the checkpointer, cuts its power while no API server can be reached, and shows
// the pods coming back, as a timeline.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/binaries"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/lab"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/site"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/witness"
)

func main() {
	if len(os.Args) > 1 {
		fmt.Fprintln(os.Stderr, "demo: it takes no arguments")
		os.Exit(2)
	}
	lab.Enter(lab.BuildCheckpointer)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	d := &demo{begin: time.Now()}
	switch err := d.run(ctx); {
	case err == nil:
	case errors.Is(ctx.Err(), context.Canceled):
		fmt.Println("\ndemo: interrupted; everything that was started is ended and removed")
	default:
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// demo tells what happens, and when.
type demo struct {
	*site.Site
	begin time.Time
}

func (d *demo) run(ctx context.Context) (err error) {
	d.chapter("An edge site comes up")
	if d.Site, err = site.Start(ctx, site.Options{}, d.say); err != nil {
		return err
	}
	before, err := d.testimonies(ctx, d.Web)
	if err != nil {
		return err
	}
	d.say("web (pod network) and gateway (host network) answer; each has a ConfigMap, a Secret and a token")
	if err := d.powerCut(ctx, before); err != nil {
		return err
	}
	if err := d.lookAround(ctx); err != nil {
		return err
	}
	if err := d.apiServerReturns(ctx); err != nil {
		return err
	}
	if err := d.lookAround(ctx); err != nil {
		return err
	}
	d.chapter("The end: everything that was started is ended and removed")
	return nil
}

func (d *demo) powerCut(ctx context.Context, before []witness.Testimony) error {
	d.chapter("No API server, then a power cut")
	if err := d.APIServer.Stop(ctx); err != nil {
		return err
	}
	d.say("the API server is gone")
	if err := d.PowerCut(ctx); err != nil {
		return err
	}
	d.say("the power is cut: no process of the node is left, its memory is lost")
	if _, err := lab.Testimony(ctx, site.GatewayAddress); err == nil {
		return errors.New("gateway answers without power")
	}
	if err := d.PowerOn(ctx); err != nil {
		return err
	}
	on := d.begin
	d.say("the power is on: containerd and kubelet have started; the kubelet finds one manifest, the checkpointer's")
	after, err := d.testimonies(ctx, site.Static(d.Web))
	if err != nil {
		return err
	}
	d.say("web and gateway answer again, from their checkpoints")
	for i := range before {
		if !reflect.DeepEqual(before[i].Dirs, after[i].Dirs) {
			return fmt.Errorf("what %s sees in its volumes has changed: before %v, after %v", after[i].Hostname, before[i].Dirs, after[i].Dirs)
		}
	}
	d.say("their ConfigMaps, Secrets and tokens are the same, byte for byte, with the same modes and owners")
	return d.log(on)
}

func (d *demo) apiServerReturns(ctx context.Context) error {
	d.chapter("The API server returns")
	begin := d.begin
	if err := d.APIServer.Start(ctx); err != nil {
		return err
	}
	d.say("the API server serves; the kubelet notices within its own back-off, of a minute at most")
	err := lab.Wait(ctx, "the hand-over", func(ctx context.Context) error {
		left, err := d.RunningCheckpoints(ctx)
		if err == nil && !slices.Equal(left, []string{d.Self}) {
			err = fmt.Errorf("checkpoints of %v still run", left)
		}
		return err
	}, d.Kubelet)
	if err != nil {
		return err
	}
	if _, err := d.testimonies(ctx, d.Web); err != nil {
		return err
	}
	d.say("the real pods run again, their checkpoints are withdrawn; only the checkpointer's own stays")
	return d.log(begin)
}

func (d *demo) testimonies(ctx context.Context, web string) ([]witness.Testimony, error) {
	first, err := d.WebTestimony(ctx, web)
	if err != nil {
		return nil, err
	}
	second, err := d.GatewayTestimony(ctx)
	return []witness.Testimony{first, second}, err
}

func (d *demo) chapter(title string) {
	d.begin = time.Now()
	fmt.Printf("\n%s\n", title)
}

func (d *demo) say(what string) {
	fmt.Printf("%7.1f s  %s\n", time.Since(d.begin).Seconds(), what)
}

// log prints the transitions that the checkpointer has logged.
func (d *demo) log(since time.Time) error {
	lines, err := site.Log(since)
	if err != nil {
		return err
	}
	fmt.Println("\n           the checkpointer's log:")
	for _, line := range lines {
		if line.Message == "transition" || line.To != "" {
			fmt.Printf("%7.1f s  %s %s -> %s %s\n", line.Time.Sub(since).Seconds(), line.Message, line.Pod, line.To, line.Reason)
		}
	}
	return nil
}

// lookAround gives a person at a terminal the time and the commands to look.
func (d *demo) lookAround(ctx context.Context) error {
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		return nil
	}
	fmt.Printf(`
           to look around, in another terminal, as root:
             nsenter -t "$(pgrep -f -n 'kubelet --config=/var/lib/kubelet/config.yaml')" -m -p -n -u -i bash
             ls /etc/kubernetes/manifests /etc/kubernetes/inactive-manifests
             %s --config /dev/null --runtime-endpoint unix://%s pods
`, binaries.Path("crictl"), lab.ContainerdSocket)
	if d.APIServer.Running() {
		fmt.Printf("             KUBECONFIG=%s %s get pods -A\n", d.AdminKubeconfig(), binaries.Path("kubectl"))
	}
	fmt.Print("           Enter goes on, Ctrl-C ends. ")
	entered := make(chan struct{})
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		close(entered)
	}()
	select {
	case <-entered:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
