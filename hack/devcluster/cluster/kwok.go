package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	flowcontrolac "k8s.io/client-go/applyconfigurations/flowcontrol/v1"
	rbacac "k8s.io/client-go/applyconfigurations/rbac/v1"
	"k8s.io/client-go/kubernetes"
)

var applied = metav1.ApplyOptions{FieldManager: "devcluster", Force: true}

// PlayNodes copies KWOK's stages from bin to stages, and returns the arguments of a KWOK that serves its health at
// address and, like the development cluster's, plays the Nodes annotated kwok.x-k8s.io/node=fake.
func PlayNodes(bin, stages, kubeconfig, address string) ([]string, error) {
	defaults := Options{}.withDefaults()
	if err := writeStages(layout{bin: bin}.stageSources(), stages, defaults.PodDeleteDelay); err != nil {
		return nil, err
	}
	return playArguments(stages, kubeconfig, address, defaults.NodeLease)
}

// prepareKWOK prepares the cluster for KWOK before it starts.
func (c *Cluster) prepareKWOK(ctx context.Context) error {
	config, err := c.AdminConfig()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	if err := grantKWOK(ctx, client); err != nil {
		return err
	}
	if err := exemptKWOK(ctx, client); err != nil {
		return err
	}
	// KWOK picks a new holder name at each start and waits until the leases of the previous one expire, which may
	// outlast its Nodes' Ready condition. The previous one is dead: nothing else starts KWOK in this cluster.
	leases := client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	if err := leases.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return fmt.Errorf("releasing the node leases of the previous KWOK: %w", err)
	}
	return nil
}

// grantKWOK lets KWOK play Nodes and their Pods, and no more.
func grantKWOK(ctx context.Context, client kubernetes.Interface) error {
	role := rbacac.ClusterRole(kwokUser).WithRules(
		rbacac.PolicyRule().WithAPIGroups("").WithResources("nodes").WithVerbs("get", "list", "watch"),
		rbacac.PolicyRule().WithAPIGroups("").WithResources("nodes/status", "pods/status").WithVerbs("patch", "update"),
		rbacac.PolicyRule().WithAPIGroups("").WithResources("pods").WithVerbs("get", "list", "watch",
			"patch", "update", "delete"),
		rbacac.PolicyRule().WithAPIGroups("").WithResources("events").WithVerbs("create", "patch", "update"),
		rbacac.PolicyRule().WithAPIGroups("coordination.k8s.io").WithResources("leases").
			WithVerbs("get", "list", "watch", "create", "patch", "update"),
	)
	if _, err := client.RbacV1().ClusterRoles().Apply(ctx, role, applied); err != nil {
		return fmt.Errorf("granting KWOK its role: %w", err)
	}
	binding := rbacac.ClusterRoleBinding(kwokUser).
		WithRoleRef(rbacac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("ClusterRole").WithName(kwokUser)).
		WithSubjects(rbacac.Subject().WithAPIGroup(rbacv1.GroupName).WithKind(rbacv1.UserKind).WithName(kwokUser))
	if _, err := client.RbacV1().ClusterRoleBindings().Apply(ctx, binding, applied); err != nil {
		return fmt.Errorf("granting KWOK its role: %w", err)
	}
	return nil
}

// exemptKWOK exempts KWOK from the queue of ordinary clients, as kubelets are: a busy client must not make Nodes miss
// heartbeats.
func exemptKWOK(ctx context.Context, client kubernetes.Interface) error {
	user := flowcontrolac.Subject().WithKind(flowcontrolv1.SubjectKindUser).WithUser(
		flowcontrolac.UserSubject().WithName(kwokUser))
	all := flowcontrolac.ResourcePolicyRule().WithVerbs(flowcontrolv1.VerbAll).WithAPIGroups(flowcontrolv1.APIGroupAll).
		WithResources(flowcontrolv1.ResourceAll).WithNamespaces(flowcontrolv1.NamespaceEvery).WithClusterScope(true)
	schema := flowcontrolac.FlowSchema("devcluster-kwok").WithSpec(flowcontrolac.FlowSchemaSpec().
		WithPriorityLevelConfiguration(flowcontrolac.PriorityLevelConfigurationReference().WithName("exempt")).
		WithMatchingPrecedence(1000).
		WithRules(flowcontrolac.PolicyRulesWithSubjects().WithSubjects(user).WithResourceRules(all)))
	if _, err := client.FlowcontrolV1().FlowSchemas().Apply(ctx, schema, applied); err != nil {
		return fmt.Errorf("exempting KWOK from fair queuing: %w", err)
	}
	return nil
}
