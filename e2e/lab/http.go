//go:build linux

package lab

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/witness"
)

// attempt bounds one try, so that a black hole doesn't use up the whole wait.
const attempt = 2 * time.Second

// probe makes a connection for each request: one that died with a power cut
// must not answer for the next life. Health checks don't verify certificates.
var probe = &http.Client{
	Timeout: attempt,
	Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
	},
}

// httpOK is a check that the URL answers 200.
func httpOK(url string) func(context.Context) error {
	return func(ctx context.Context) error {
		r, err := get(ctx, url)
		if err != nil {
			return err
		}
		return r.Body.Close()
	}
}

func get(ctx context.Context, url string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	r, err := probe.Do(request)
	if err != nil {
		return nil, err
	}
	if r.StatusCode != http.StatusOK {
		r.Body.Close()
		return nil, fmt.Errorf("%s: %s", url, r.Status)
	}
	return r, nil
}

// Testimony asks the witness at address ("10.77.0.2:8080") once.
func Testimony(ctx context.Context, address string, dirs ...string) (witness.Testimony, error) {
	r, err := get(ctx, "http://"+address+"/?"+url.Values{"dir": dirs}.Encode())
	if err != nil {
		return witness.Testimony{}, err
	}
	defer r.Body.Close()
	var t witness.Testimony
	return t, json.NewDecoder(r.Body).Decode(&t)
}

// WaitTestimony asks the witness at address until it answers.
func WaitTestimony(ctx context.Context, address string, dirs ...string) (t witness.Testimony, err error) {
	err = Wait(ctx, "witness at "+address, func(ctx context.Context) (err error) {
		t, err = Testimony(ctx, address, dirs...)
		return err
	})
	return t, err
}
