package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/cmd/kubectl-machine/cli"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/references"
	"github.com/machine-iac/machine-iac-operator/internal/inspect"
)

func newSecrets() *cobra.Command {
	var i cli.Inspection
	var unusable bool
	var usable []string
	command := &cobra.Command{
		Use:   "secrets",
		Short: "Show the Secrets that Machines name, and which of them lack the label",
		Long: `Show the Secrets that the providerSpecs of Machines and MachineSets name, and whether the operator lets them be used: by the label
machine-iac.io/usable-by-machines, or by their names. What a providerSpec leaves to defaults is not shown. No content of Secrets is read.`,
		Example: `  # What has to be done before --secret-references=Labelled takes effect
  kubectl machine secrets -n openshift-machine-api --unusable`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			facts, err := i.Read(command, nil, inspect.Want{Sets: true})
			if err != nil {
				return err
			}
			live, _, err := i.Connect()
			if err != nil {
				return err
			}
			list, err := readSecrets(command.Context(), live, facts, references.New(references.Labelled, usable...), unusable)
			if err != nil {
				return err
			}
			switch {
			case len(list.Items) == 0 && unusable:
				i.Nothing(command, "Every Secret that is named may be used", facts.Namespace)
			case len(list.Items) == 0:
				i.Nothing(command, "No Secret is named", facts.Namespace)
			}
			return i.Printer.Print(command.OutOrStdout(), list)
		},
	}
	i.Register(command)
	i.RegisterSelection(command)
	i.RegisterOutput(command)
	command.Flags().BoolVar(&unusable, "unusable", false, "Only Secrets that are unusable or missing.")
	command.Flags().StringArrayVar(&usable, "usable-secret", nil,
		"Secret in the manager's flag of this name; may be repeated.")
	return command
}

// readSecrets returns what is named, with what the API server knows of each.
func readSecrets(ctx context.Context, live client.Client, facts *inspect.Facts, policy *references.Policy,
	unusableOnly bool) (*secretList, error) {
	list := &secretList{Items: []namedSecret{}, namespace: facts.Namespace}
	for _, named := range namedBy(facts) {
		secret := &metav1.PartialObjectMetadata{}
		secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		err := live.Get(ctx, client.ObjectKey{Namespace: named.Namespace, Name: named.Secret}, secret)
		secret.Namespace, secret.Name = named.Namespace, named.Secret
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("reading the labels of Secret %s/%s: %w", named.Namespace, named.Secret, err)
		}
		refused := policy.Check(secret, named.Use)
		switch {
		case apierrors.IsNotFound(err):
			named.Status, named.Message = "Missing", "there is no such Secret"
		case refused == nil:
			named.Status = "Usable"
		case refused.Final:
			named.Status, named.Message = "Forbidden", refused.Problem
		default:
			named.Status, named.Message = "Unlabelled", refused.Command
		}
		if named.Status != "Usable" || !unusableOnly {
			list.Items = append(list.Items, named)
		}
	}
	return list, nil
}
