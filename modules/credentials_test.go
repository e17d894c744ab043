package modules_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/machine-iac/machine-iac-operator/internal/module"
)

const (
	awsKeys = "[default]\naws_access_key_id = AKIAEXAMPLE\naws_secret_access_key = wJalr/K7+EXAMPLE="
	awsRole = "[default]\nsts_regional_endpoints = regional\nrole_arn = arn:aws:iam::123456789012:role/demo\n" +
		"web_identity_token_file = /var/run/secrets/openshift/serviceaccount/token"
	googleKey = `{
  "type": "service_account",
  "project_id": "acme",
  "private_key_id": "0a1b",
  "private_key": "-----BEGIN PRIVATE KEY-----\nMIIE/+w\u003d\u003d\n-----END PRIVATE KEY-----\n",
  "client_email": "demo@acme.iam.gserviceaccount.com",
  "client_id": "1234",
  "auth_uri": "https://accounts.google.com/o/oauth2/auth",
  "token_uri": "https://oauth2.googleapis.com/token",
  "auth_provider_x509_cert_url": "https://www.googleapis.com/oauth2/v1/certs",
  "client_x509_cert_url": "https://www.googleapis.com/robot/v1/metadata/x509/demo%40acme.iam.gserviceaccount.com",
  "universe_domain": "googleapis.com"
}
`
	googleFederation = `{"type":"external_account","audience":"//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/p",` +
		`"subject_token_type":"urn:ietf:params:oauth:token-type:jwt","token_url":"https://sts.googleapis.com/v1/token",` +
		`"service_account_impersonation_url":"https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/demo@acme.iam.gserviceaccount.com:generateAccessToken",` +
		`"credential_source":{"file":"/var/run/secrets/openshift/serviceaccount/token","format":{"type":"text"}}}`
)

// azureIdentity is a Secret with what every way to sign in has, and more.
func azureIdentity(key, value string) map[string]string {
	return map[string]string{
		"azure_subscription_id": "s", "azure_tenant_id": "t", "azure_client_id": "c", "azure_region": "eastus", "azure_resourcegroup": "demo-rg", key: value,
	}
}

func asARM(name, value string) map[string]string {
	return map[string]string{"ARM_SUBSCRIPTION_ID": "s", "ARM_TENANT_ID": "t", "ARM_CLIENT_ID": "c", name: value}
}

// These are what OpenShift's cloud credential operator writes, with keys and with short-lived credentials.
func TestSecretsOfTheCloudCredentialOperatorSignIn(t *testing.T) {
	for name, tc := range map[string]struct {
		module                     string
		secret                     map[string]string
		wantEnvironment, wantFiles map[string]string
	}{
		"AWS, keys alone": {
			module: "aws", secret: map[string]string{"aws_access_key_id": "AKIAEXAMPLE", "aws_secret_access_key": "wJalr"},
			wantEnvironment: map[string]string{"AWS_ACCESS_KEY_ID": "AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": "wJalr"},
		},
		"AWS, keys twice: the file counts": {
			module: "aws", secret: map[string]string{"aws_access_key_id": "old", "aws_secret_access_key": "old", "credentials": awsKeys},
			wantFiles: map[string]string{"AWS_CONFIG_FILE": awsKeys},
		},
		"AWS, a role": {module: "aws", secret: map[string]string{"credentials": awsRole}, wantFiles: map[string]string{"AWS_CONFIG_FILE": awsRole}},
		"Azure, a secret": {
			module: "azure", secret: azureIdentity("azure_client_secret", "hush"), wantEnvironment: asARM("ARM_CLIENT_SECRET", "hush"),
		},
		"Azure, a federated token": {
			module: "azure", secret: azureIdentity("azure_federated_token_file", "/var/run/secrets/openshift/serviceaccount/token"),
			wantEnvironment: asARM("ARM_OIDC_TOKEN_FILE_PATH", "/var/run/secrets/openshift/serviceaccount/token"),
		},
		"Google Cloud, the key of a service account": {
			module: "gcp", secret: map[string]string{"service_account.json": googleKey}, wantEnvironment: map[string]string{"GOOGLE_CREDENTIALS": googleKey},
		},
		"Google Cloud, a federated token": {
			module: "gcp", secret: map[string]string{"service_account.json": googleFederation},
			wantEnvironment: map[string]string{"GOOGLE_CREDENTIALS": googleFederation},
		},
		"Nutanix, a user of Prism Central": {
			module: "nutanix", secret: map[string]string{"credentials": `[{"type":"basic_auth","data":{"prismCentral":{"username":"u","password":"p"},"prismElements":null}}]`},
			wantEnvironment: map[string]string{"NUTANIX_USERNAME": "u", "NUTANIX_PASSWORD": "p"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			environment, files, faults := readSecret(t, tc.module, tc.secret)
			if len(faults) > 0 {
				t.Fatalf("the Secret is refused: %v", faults)
			}
			if diff := cmp.Diff(tc.wantEnvironment, environment, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("environment (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantFiles, files, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

// Whoever may write a Secret may sign in with it. He may not run commands in the manager's Pod, nor have its files sent anywhere.
func TestASecretIsNoMoreThanCredentials(t *testing.T) {
	const own = "/var/run/secrets/kubernetes.io/serviceaccount/token"
	for name, tc := range map[string]struct {
		module, key, value string
	}{
		"AWS, a command":             {"aws", "credentials", "[default]\ncredential_process = /bin/sh -c id\n"},
		"AWS, an indented command":   {"aws", "credentials", "[default]\nregion = a\n  credential_process = /bin/sh\n"},
		"AWS, a command after CR":    {"aws", "credentials", "[default]\nregion = a\rcredential_process = /bin/sh\n"},
		"AWS, a host as a region":    {"aws", "credentials", "[default]\nregion = elsewhere.example/\n"},
		"AWS, another file":          {"aws", "credentials", "[default]\nrole_arn = arn:a\nweb_identity_token_file = " + own},
		"AWS, another endpoint":      {"aws", "credentials", "[default]\nendpoint_url = https://elsewhere.example\n"},
		"AWS, endpoints":             {"aws", "credentials", "[default]\nservices = x\n[services x]\nsts =\n  endpoint_url = https://elsewhere.example\n"},
		"Azure, another file":        {"azure", "azure_federated_token_file", own},
		"Azure, a way to it":         {"azure", "azure_federated_token_file", "/var/run/secrets/openshift/serviceaccount/token/../../../kubernetes.io/serviceaccount/token"},
		"Google, a file by its name": {"gcp", "service_account.json", own},
		"Google, another file":       {"gcp", "service_account.json", `{"type":"external_account","credential_source":{"file":"` + own + `"}}`},
		"Google, an escaped name":    {"gcp", "service_account.json", `{"type":"external_account","credential_source":{"fil\u0065":"` + own + `"}}`},
		"Google, a command":          {"gcp", "service_account.json", `{"credential_source":{"executable":{"command":"id"}}}`},
		"Google, a page":             {"gcp", "service_account.json", `{"credential_source":{"url":"http://metadata"}}`},
		"Google, another exchange":   {"gcp", "service_account.json", `{"token_url":"https://elsewhere.example/"}`},
		"Google, a similar exchange": {"gcp", "service_account.json", `{"token_url":"https://sts.googleapis.com.elsewhere.example/"}`},
		"Google, another universe":   {"gcp", "service_account.json", `{"universe_domain":"elsewhere.example"}`},
		"Google, another delegate":   {"gcp", "service_account.json", `{"service_account_impersonation_url":"https://elsewhere.example/"}`},
	} {
		t.Run(name, func(t *testing.T) {
			secret := azureIdentity(tc.key, tc.value)
			if _, _, faults := readSecret(t, tc.module, secret); len(faults) != 1 {
				t.Errorf("faults are %v, want one", faults)
			}
		})
	}
}

// What clouds.yaml files of clouds say: of Keystone below a path or at a port of its own, of addresses, and of files that an administrator has put into /etc.
func TestACloudsYAMLSignsInWhereItSays(t *testing.T) {
	const federated = "    auth_type: v3applicationcredential\n"
	for name, cloud := range map[string]string{
		"a path":                       "    auth: {auth_url: 'https://keystone.cloud.example/identity/v3', username: u, password: p, project_name: acme}\n",
		"a port":                       "    auth:\n      auth_url: https://overcloud.example:13000\n      username: u\n      password: p\n      project_id: 0123456789abcdef0123456789abcdef\n    verify: false\n",
		"a slash at the end":           "    auth: {auth_url: https://auth.cloud.example/v3/, application_credential_id: i, application_credential_secret: s}\n" + federated,
		"an address":                   "    auth: {auth_url: 'http://192.0.2.10:5000/v3', username: u, password: p, project_name: acme}\n    identity_api_version: 3\n",
		"an address of version 6":      "    auth: {auth_url: 'https://[2001:db8::10]:5000/v3', username: u, password: p, project_name: acme}\n",
		"a bundle of the distribution": "    auth: {auth_url: https://a.example/v3, username: u, password: p}\n    cacert: /etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem\n",
		"a certificate of the client":  "    auth: {auth_url: https://a.example/v3, username: u, password: p}\n    cert: /etc/openstack/client.crt\n    key: /etc/openstack/client.key\n",
		"no authority":                 "    auth: {auth_url: https://a.example/v3, username: u, password: p}\n    cacert: ''\n    interface: public\n",
	} {
		content := "clouds:\n  openstack:\n" + cloud + "    region_name: RegionOne\n"
		_, files, faults := readSecret(t, "openstack", map[string]string{"clouds.yaml": content})
		if len(faults) > 0 || files["OS_CLIENT_CONFIG_FILE"] != content {
			t.Errorf("%s: refused with %v, files %v", name, faults, files)
		}
	}
	for name, cloud := range map[string]string{
		"an authority of the Pod's account": "    cacert: /var/run/secrets/kubernetes.io/serviceaccount/token\n",
		"a key of the work folder":          "    key: /var/lib/machine-iac/runs/1/secret-files/key\n",
		"a way up":                          "    cacert: /etc/../var/run/secrets/kubernetes.io/serviceaccount/token\n",
		"a relative file":                   "    cert: client.crt\n",
		"a user in the URL":                 "    auth: {auth_url: 'https://u:p@a.example/v3'}\n",
		"a file for a URL":                  "    auth: {auth_url: 'file:///etc/passwd'}\n",
		"a query":                           "    auth: {auth_url: 'https://a.example/v3?to=b.example'}\n",
	} {
		if _, _, faults := readSecret(t, "openstack", map[string]string{"clouds.yaml": "clouds:\n  openstack:\n" + cloud}); len(faults) == 0 {
			t.Errorf("%s is accepted", name)
		}
	}
}

// A Secret names hosts, and how they are reached is not its choice.
func TestAServerInASecretIsAHost(t *testing.T) {
	for _, tc := range []struct {
		module, key, value string
		accepted           bool
	}{
		{"nutanix", "endpoint", "prism.example.com", true},
		{"nutanix", "endpoint", "user@elsewhere.example", false},
		{"nutanix", "endpoint", "elsewhere.example/path", false},
		{"kubemark", "server", "https://kubernetes.default.svc", true},
		{"kubemark", "server", "https://[fd00::1]:6443/clusters/a\n", true},
		{"kubemark", "server", "127.0.0.1:6443", true},
		{"kubemark", "server", "http://elsewhere.example", false},
		{"kubemark", "server", "https://user:secret@elsewhere.example", false},
		{"kubemark", "server", "https://elsewhere.example?a=b", false},
		{"kubemark", "server", "unix:///run/containerd.sock", false},
	} {
		secret := map[string]string{"token": "t", "ca.crt": "c", "credentials": `[{"data":{"prismCentral":{"username":"u","password":"p"}}}]`, tc.key: tc.value}
		if _, _, faults := readSecret(t, tc.module, secret); (len(faults) == 0) != tc.accepted {
			t.Errorf("%s, %s: %q: faults are %v", tc.module, tc.key, tc.value, faults)
		}
	}
}

func readSecret(t *testing.T, name string, secret map[string]string) (environment, files map[string]string, faults []module.CredentialFault) {
	t.Helper()
	data := map[string][]byte{}
	for key, value := range secret {
		data[key] = []byte(value)
	}
	return module.ReadCredentials(keptIn(t, name).Spec().Credentials.Keys, data)
}
