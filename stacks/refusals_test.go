package stacks_test

import (
	"strings"
	"testing"
)

// TestAStackRefusesWhatItCannotMake has each validation that a stack adds to those of the module of the same name.
func TestAStackRefusesWhatItCannotMake(t *testing.T) {
	cases := map[string]struct{ stack, values, changed, want string }{
		"more addresses than a Machine of OpenStack shows": {
			stack: "openstack", values: worker, changed: `{"networks":[` + strings.Repeat(`{"uuid":"n"},`, 16) + `{"uuid":"n"}]}`, want: "This stack reports at most 32 addresses",
		},
		"a network load balancer": {
			stack: "aws", values: ec2, changed: `{"loadBalancers":[{"name":"demo-x7k2p-int","type":"network"}]}`, want: "This stack adds no instance to network load balancers",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			i := newInstance(t, tc.stack, "schemas", tc.values)
			i.credentials = map[string][]byte{"clouds.yaml": []byte("clouds: {openstack: {auth: {auth_url: https://keystone.example.com}}}"), "aws_access_key_id": []byte("AKIAEXAMPLE"), "aws_secret_access_key": []byte("hunter22hunter22")}
			if _, err := i.render(tc.changed); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("it returns %v, want %q", err, tc.want)
			}
			if _, err := i.render(`{}`); err != nil {
				t.Errorf("without the change it returns %v", err)
			}
		})
	}
}
