// Package moto runs moto_server, a local in-memory implementation of AWS's APIs, and calls it as an administrator
// would.
package moto

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

const (
	startTimeout = 3 * time.Minute
	poll         = 200 * time.Millisecond
)

// ErrMissing says how to install moto_server.
var ErrMissing = errors.New("moto_server is not on PATH: pip install 'moto[server]==5.2.1'")

type Server struct {
	url     string
	process *exec.Cmd
}

// Start starts the server in dir. It returns ErrMissing if the program is not installed.
func Start(ctx context.Context, dir string) (*Server, error) {
	program, err := exec.LookPath("moto_server")
	if err != nil {
		return nil, ErrMissing
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	host, port, _ := net.SplitHostPort(listener.Addr().String())
	if err := listener.Close(); err != nil {
		return nil, err
	}
	s := &Server{url: "http://" + net.JoinHostPort(host, port)}
	s.process = exec.CommandContext(context.WithoutCancel(ctx), program, "-H", host, "-p", port)
	s.process.Dir = dir
	s.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := s.process.Start(); err != nil {
		return nil, fmt.Errorf("starting moto_server: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		err := s.ready(ctx)
		if err == nil {
			return s, nil
		}
		select {
		case <-ctx.Done():
			s.Close()
			return nil, fmt.Errorf("waiting for moto_server: %w", err)
		case <-time.After(poll):
		}
	}
}

func (s *Server) Close() {
	// The program may be a shim whose child is the server.
	_ = syscall.Kill(-s.process.Process.Pid, syscall.SIGKILL)
	_ = s.process.Wait()
}

func (s *Server) ready(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/moto-api/data.json", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	return nil
}

type Element struct {
	XMLName xml.Name
	Text    string    `xml:",chardata"`
	Inner   []Element `xml:",any"`
}

// All returns the texts of all elements with a name, at any depth.
func (e Element) All(name string) []string {
	var found []string
	for _, inner := range e.Inner {
		if inner.XMLName.Local == name {
			found = append(found, strings.TrimSpace(inner.Text))
		}
		found = append(found, inner.All(name)...)
	}
	return found
}

// versions are API versions by the service's name in signatures. Version 2012-06-01 has classic load balancers.
var versions = map[string]string{"ec2": "2016-11-15", "elasticloadbalancing": "2015-12-01", "iam": "2010-05-08"}

// Do calls an action, such as RunInstances of EC2 or "elasticloadbalancing CreateListener", with alternating parameter
// names and values.
func (s *Server) Do(ctx context.Context, action string, parameters ...string) (Element, error) {
	service := "ec2"
	if name, rest, ok := strings.Cut(action, " "); ok {
		service, action = name, rest
	}
	form := url.Values{"Action": {action}, "Version": {versions[service]}}
	for n := 0; n+1 < len(parameters); n += 2 {
		form.Set(parameters[n], parameters[n+1])
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, strings.NewReader(form.Encode()))
	if err != nil {
		return Element{}, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Authorization",
		"AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/"+service+
			"/aws4_request, SignedHeaders=host, Signature=none")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return Element{}, err
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return Element{}, fmt.Errorf("%s: %s: %w: %s", action, response.Status, err, content)
	}
	var read Element
	if err := xml.Unmarshal(content, &read); err != nil {
		return Element{}, fmt.Errorf("%s: decoding the response: %w", action, err)
	}
	return read, nil
}

// Make calls an action like Do, and returns the text of the first wanted element.
func (s *Server) Make(ctx context.Context, action, wanted string, parameters ...string) (string, error) {
	response, err := s.Do(ctx, action, parameters...)
	if err != nil {
		return "", err
	}
	found := response.All(wanted)
	if len(found) == 0 || found[0] == "" {
		return "", fmt.Errorf("%s: no %s in the response", action, wanted)
	}
	return found[0], nil
}

// Tag adds tags to an EC2 resource, given as alternating names and values.
func (s *Server) Tag(ctx context.Context, id string, tags ...string) error {
	parameters := []string{"ResourceId.1", id}
	for n := 0; n+1 < len(tags); n += 2 {
		parameters = append(parameters, fmt.Sprintf("Tag.%d.Key", n/2+1), tags[n],
			fmt.Sprintf("Tag.%d.Value", n/2+1), tags[n+1])
	}
	_, err := s.Do(ctx, "CreateTags", parameters...)
	return err
}
