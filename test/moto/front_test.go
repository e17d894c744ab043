package moto

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFrontChecksTheKeyAndPermissions(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("Action") == "" && r.Header.Get("X-Amz-Target") == "" {
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	t.Cleanup(backend.Close)
	var asked []string
	front, err := (&Server{url: backend.URL}).NewFront("AKIAFIRST", func(action string) bool {
		asked = append(asked, action)
		return action != "ec2:StopInstances"
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(front.Close)
	call := func(key, service, action string) int {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, front.URL(),
			strings.NewReader(url.Values{"Action": {action}}.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		request.Header.Set("Authorization",
			"AWS4-HMAC-SHA256 Credential="+key+"/20260101/us-east-1/"+service+
				"/aws4_request, SignedHeaders=host, Signature=none")
		if service == "tagging" {
			request.Header.Set("X-Amz-Target", "ResourceGroupsTaggingAPI_20170126."+action)
		}
		response, err := front.server.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		return response.StatusCode
	}
	got := []int{call("AKIAFIRST", "ec2", "RunInstances"), call("AKIAOTHER", "ec2", "RunInstances"),
		call("AKIAFIRST", "ec2", "StopInstances")}
	front.Rotate("AKIAOTHER")
	got = append(got, call("AKIAFIRST", "tagging", "GetResources"), call("AKIAOTHER", "tagging", "GetResources"))
	if diff := cmp.Diff([]int{200, 401, 403, 401, 200}, got); diff != "" {
		t.Errorf("responses (-want +got):\n%s", diff)
	}
	want := []string{"ec2:RunInstances", "ec2:StopInstances", "tag:GetResources"}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("actions of valid calls (-want +got):\n%s", diff)
	}
}
