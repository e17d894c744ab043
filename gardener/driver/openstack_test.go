package driver

import (
	"encoding/json"
	"strings"
	"testing"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// openstackSecret is one of Gardener's, by KEY=VALUE.
func openstackSecret(pairs ...string) *corev1.Secret {
	data := map[string][]byte{"userData": []byte("x"), "authURL": []byte("https://keystone:5000/v3"), "domainName": []byte("shoots"), "tenantName": []byte("garden")}
	for _, pair := range pairs {
		key, value, _ := strings.Cut(pair, "=")
		data[key] = []byte(value)
	}
	return &corev1.Secret{Data: data}
}

func TestGardenersCredentialsForOpenStackAreAClouds(t *testing.T) {
	cases := map[string]struct {
		secret *corev1.Secret
		want   string
	}{
		"a user": {openstackSecret("username=u", "password=p"), `{"auth":{"auth_url":"https://keystone:5000/v3","username":"u","password":"p",
			"user_domain_name":"shoots","project_name":"garden","project_domain_name":"shoots"},"region_name":"RegionOne"}`},
		"a user of another domain, without checks of certificates": {
			openstackSecret("username=u", "password=p\n", "userDomainID=7", "insecure=true"), `{"auth":{"auth_url":"https://keystone:5000/v3","username":"u","password":"p",
			"user_domain_id":"7","project_name":"garden","project_domain_name":"shoots"},"region_name":"RegionOne","verify":false}`,
		},
		"an application credential": {
			openstackSecret("applicationCredentialID=i", "applicationCredentialSecret=s"), `{"auth_type":"v3applicationcredential",
			"auth":{"auth_url":"https://keystone:5000/v3","application_credential_id":"i","application_credential_secret":"s"},"region_name":"RegionOne"}`,
		},
		"an application credential by its name": {
			openstackSecret("username=u", "applicationCredentialName=n", "applicationCredentialSecret=s"), `{"auth_type":"v3applicationcredential",
			"auth":{"auth_url":"https://keystone:5000/v3","username":"u","user_domain_name":"shoots","application_credential_name":"n","application_credential_secret":"s"},"region_name":"RegionOne"}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			of := class(Provider, strings.Replace(openstack, `}`, `,"cloudname":"other"}`, 1))
			of.NodeTemplate = &mcm.NodeTemplate{Region: "RegionOne"}
			w, err := newDesired(machineOf("m"), of, tc.secret)
			if err != nil {
				t.Fatal(err)
			}
			var got struct{ Clouds map[string]any }
			if err := json.Unmarshal(w.credentials.Data[keyClouds], &got); err != nil {
				t.Fatal(err)
			}
			var want any
			if err := json.Unmarshal([]byte(tc.want), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(map[string]any{cloudName: want}, got.Clouds); diff != "" {
				t.Errorf("the clouds differ (-want +got):\n%s", diff)
			}
			if _, kept := w.credentials.Data["userData"]; kept || w.credentials.Name != "worker-regionone-machine-iac" {
				t.Errorf("the Secret is %s: %v", w.credentials.Name, w.credentials.Data)
			}
			named := map[string]any{"name": "worker-regionone-machine-iac"}
			if diff := cmp.Diff([]any{named, cloudName, nil}, []any{w.providerSpec["cloudsSecret"], w.providerSpec["cloudName"], w.providerSpec["cloudname"]}); diff != "" {
				t.Errorf("the providerSpec differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheAuthorityOfOpenStackIsKept(t *testing.T) {
	w, err := newDesired(machineOf("m"), class(Provider, openstack), openstackSecret("username=u", "password=p", "caCert=PEM"))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(w.credentials.Data[keyAuthority]); got != "PEM" || w.credentials.Name != "worker-machine-iac" {
		t.Errorf("the authority in %s is %q", w.credentials.Name, got)
	}
}

func TestCloudsOfOnesOwnStay(t *testing.T) {
	of := class(Provider, strings.Replace(openstack, `}`, `,"cloudName":"mine"}`, 1))
	w, err := newDesired(machineOf("m"), of, openstackSecret("clouds.yaml=clouds: {}"))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(w.credentials.Data[keyClouds]); got != "clouds: {}" || w.credentials.Name != "worker-machine-iac" || w.providerSpec["cloudName"] != "mine" {
		t.Errorf("%s has the clouds %q, and the cloud is %v; want those of the class's Secret", w.credentials.Name, got, w.providerSpec["cloudName"])
	}
}

func TestCredentialsForOpenStackThatAreRefused(t *testing.T) {
	for want, secret := range map[string]*corev1.Secret{
		"clientCert": openstackSecret("username=u", "password=p", "clientCert=x", "clientKey=y"),
		"neither":    openstackSecret("username=u"),
	} {
		_, err := newDesired(machineOf("m"), class(Provider, openstack), secret)
		if codeOf(err) != codes.InvalidArgument || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "Secret worker") {
			t.Errorf("the error is %v, want InvalidArgument with %q", err, want)
		}
	}
}
