package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// awsAPIVariable is the environment variable with the URL of a local API in the form of AWS's. With it what modules read is read from there.
const awsAPIVariable = "SCHEMA_PROVIDER_AWS_URL"

// maxResponse bounds what is read of a response.
const maxResponse = 16 << 20

// awsAPI is a local API in the form of AWS's.
type awsAPI struct {
	url, region string
	client      *http.Client
}

// awsAPIOf returns the API that the environment names for a provider; nil where it names none. It must be on this machine: requests are not signed.
func awsAPIOf(name string) (*awsAPI, error) {
	given := os.Getenv(awsAPIVariable)
	if given == "" || name != "aws" {
		return nil, nil
	}
	parsed, err := url.Parse(given)
	if err != nil || parsed.Scheme != "http" || !net.ParseIP(parsed.Hostname()).IsLoopback() {
		return nil, fmt.Errorf("%s is %q; write the URL of a server on this machine, as http://127.0.0.1:5000", awsAPIVariable, given)
	}
	return &awsAPI{url: given, client: &http.Client{Timeout: time.Minute}}, nil
}

// node is an element of XML.
type node struct {
	XMLName  xml.Name
	Text     string `xml:",chardata"`
	Children []node `xml:",any"`
}

// all returns the elements at a path of names joined by slashes.
func (n node) all(path string) []node {
	found := []node{n}
	for step := range strings.SplitSeq(path, "/") {
		var next []node
		for _, one := range found {
			for _, child := range one.Children {
				if child.XMLName.Local == step {
					next = append(next, child)
				}
			}
		}
		found = next
	}
	return found
}

// text returns the text of the first element at a path; empty where there is none.
func (n node) text(path string) string {
	for _, one := range n.all(path) {
		return strings.TrimSpace(one.Text)
	}
	return ""
}

// texts returns the texts of all elements at a path.
func (n node) texts(path string) []string {
	texts := []string{}
	for _, one := range n.all(path) {
		texts = append(texts, strings.TrimSpace(one.Text))
	}
	return texts
}

// query calls an action of a service that is asked by forms and responds in XML.
func (a *awsAPI) query(ctx context.Context, service, version, action string, arguments url.Values) (node, error) {
	form := url.Values{"Action": {action}, "Version": {version}}
	for name, values := range arguments {
		form[name] = values
	}
	content, err := a.post(ctx, service, "application/x-www-form-urlencoded; charset=utf-8", "", []byte(form.Encode()))
	if err != nil {
		return node{}, fmt.Errorf("%s: %w", action, err)
	}
	var response node
	if err := xml.Unmarshal(content, &response); err != nil {
		return node{}, fmt.Errorf("%s: %w", action, err)
	}
	return response, nil
}

// call calls an action of a service that is asked and responds in JSON.
func (a *awsAPI) call(ctx context.Context, service, target string, arguments, into any) error {
	body, err := json.Marshal(arguments)
	if err != nil {
		return err
	}
	content, err := a.post(ctx, service, "application/x-amz-json-1.1", target, body)
	if err == nil {
		err = json.Unmarshal(content, into)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", target, err)
	}
	return nil
}

func (a *awsAPI) post(ctx context.Context, service, kind, target string, body []byte) (content []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", kind)
	if target != "" {
		request.Header.Set("X-Amz-Target", target)
	}
	// A server for tests takes the service and the region from it, and checks no signature.
	request.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=test/20260101/"+a.region+"/"+service+"/aws4_request, SignedHeaders=host, Signature=none")
	response, err := a.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	content, err = io.ReadAll(io.LimitReader(response.Body, maxResponse))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, strings.Join(strings.Fields(string(content)), " "))
	}
	return content, err
}
