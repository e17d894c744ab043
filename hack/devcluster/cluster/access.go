package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const tokenLifetime = 24 * time.Hour

// Server returns the URL of the API server, or "" if the cluster was never up. It changes when [Cluster.Up] finds the
// port taken by another program.
func (c *Cluster) Server() string {
	current, err := loadState(c.layout.state())
	if err != nil || current.Ports[portAPIServer] == 0 {
		return ""
	}
	return serverURL(current.Ports)
}

// CAData returns the PEM certificate of the authority that signed the API server's certificate.
func (c *Cluster) CAData() ([]byte, error) {
	data, err := os.ReadFile(c.layout.cert(certCA))
	if err != nil {
		return nil, fmt.Errorf("reading the certificate authority: %w; start the cluster first", err)
	}
	return data, nil
}

// AdminKubeconfig returns the path of the administrator's kubeconfig. The file exists once the cluster has been up.
func (c *Cluster) AdminKubeconfig() string { return c.layout.adminKubeconfig() }

// AdminConfig returns the administrator's client configuration.
func (c *Cluster) AdminConfig() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.layout.adminKubeconfig())
	if err != nil {
		return nil, fmt.Errorf("reading the administrator's kubeconfig: %w; start the cluster first", err)
	}
	return config, nil
}

// ServiceAccountKubeconfig writes a kubeconfig to file that acts as an existing service account, with a token valid for
// 24 hours. Only its owner can read the file.
func (c *Cluster) ServiceAccountKubeconfig(ctx context.Context, namespace, name, file string) error {
	if _, err := c.AdminConfig(); err != nil {
		return err
	}
	return ServiceAccountKubeconfig(ctx, c.AdminKubeconfig(), namespace, name, file)
}

// ServiceAccountKubeconfig does the same in the current context of another kubeconfig, which must embed its
// certificates.
func ServiceAccountKubeconfig(ctx context.Context, admin, namespace, name, file string) error {
	doing := fmt.Sprintf("getting a token for service account %s/%s", namespace, name)
	loaded, err := clientcmd.LoadFromFile(admin)
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	config, err := clientcmd.NewDefaultClientConfig(*loaded, nil).ClientConfig()
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	seconds := int64(tokenLifetime / time.Second)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	token, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%s: %w; create it first", doing, err)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("making the folder of the kubeconfig: %w", err)
	}
	server := loaded.Clusters[loaded.Contexts[loaded.CurrentContext].Cluster]
	return writeKubeconfig(file, server, &clientcmdapi.AuthInfo{Token: token.Status.Token})
}

// writeKubeconfig writes a kubeconfig that embeds its certificates.
func writeKubeconfig(file string, server *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) error {
	const name = "devcluster"
	data, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: server},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: user},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	})
	if err != nil {
		return fmt.Errorf("encoding the kubeconfig: %w", err)
	}
	return writeFile(file, data)
}

// writeKubeconfigs writes the kubeconfigs of all users with a certificate.
func writeKubeconfigs(l layout, server string) error {
	authority, err := os.ReadFile(l.cert(certCA))
	if err != nil {
		return fmt.Errorf("reading the certificate authority: %w", err)
	}
	files := map[string]string{
		certAdmin:                 l.adminKubeconfig(),
		string(ControllerManager): l.kubeconfig(ControllerManager),
		string(Scheduler):         l.kubeconfig(Scheduler),
		string(KWOK):              l.kubeconfig(KWOK),
	}
	for name, file := range files {
		cert, err := os.ReadFile(l.cert(name))
		if err != nil {
			return fmt.Errorf("reading the certificate of %s: %w", name, err)
		}
		key, err := os.ReadFile(l.key(name))
		if err != nil {
			return fmt.Errorf("reading the key of %s: %w", name, err)
		}
		user := &clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key}
		if err := writeKubeconfig(file,
			&clientcmdapi.Cluster{Server: server, CertificateAuthorityData: authority}, user); err != nil {
			return err
		}
	}
	return nil
}
