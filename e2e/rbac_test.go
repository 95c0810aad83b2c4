//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/lab"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/site"
)

const checkpointerName = "pod-checkpointer" // of its ServiceAccount, and how the names of its roles begin

// needEachRule has the agent's client do all that it ever does, as the ServiceAccount. With the rules that the overlay
// gives it all succeeds; without any one verb on any one resource something is forbidden.
func needEachRule(ctx context.Context, l timeline, cluster *lab.Cluster) {
	l.step("the overlay is applied", cluster.ApplyKustomize(ctx, writeServiceAccountOverlay(l.t)))
	l.step("a pod refers to all that can be referred to", referringPod(ctx, cluster))
	kubeconfig, err := serviceAccountKubeconfig(ctx, l.t.TempDir(), cluster)
	l.step("the ServiceAccount has a token", err)
	a := asker{cluster, kubeconfig}
	roles, err := rolesOf(ctx, cluster)
	l.step("its roles are found", err)
	removed := 0
	for _, r := range roles {
		for i, rule := range r.rules {
			what := fmt.Sprintf("%s %s by %s", rule.Verbs[0], rule.Resources[0], r.name)
			l.step("with all rules", errors.Join(r.set(ctx, r.rules), site.Soon(ctx, "a client that is allowed all", a.ask)))
			l.step("without "+what, errors.Join(
				r.set(ctx, slices.Delete(slices.Clone(r.rules), i, i+1)),
				site.Soon(ctx, "a client that may not "+what, a.isForbidden),
			))
			removed++
		}
		l.step(r.name+" is whole again", r.set(ctx, r.rules))
	}
	if removed < 10 {
		l.t.Errorf("only %d rules were taken away", removed)
	}
}

// role is a Role or a ClusterRole.
type role struct {
	name  string
	rules []rbacv1.PolicyRule // each of one verb on one resource
	set   func(context.Context, []rbacv1.PolicyRule) error
}

func rolesOf(ctx context.Context, cluster *lab.Cluster) (roles []role, err error) {
	client := cluster.Client().RbacV1()
	whole, err := client.ClusterRoles().Get(ctx, checkpointerName, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	roles = append(roles, role{"ClusterRole " + whole.Name, single(whole.Rules), func(ctx context.Context, rules []rbacv1.PolicyRule) error {
		_, err := client.ClusterRoles().Patch(ctx, whole.Name, types.MergePatchType, patchOf(rules), metav1.PatchOptions{})
		return err
	}})
	for namespace, name := range map[string]string{site.Namespace: checkpointerName, "default": checkpointerName + "-service"} {
		namespaced, err := client.Roles(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		roles = append(roles, role{"Role " + namespace + "/" + name, single(namespaced.Rules), func(ctx context.Context, rules []rbacv1.PolicyRule) error {
			_, err := client.Roles(namespace).Patch(ctx, name, types.MergePatchType, patchOf(rules), metav1.PatchOptions{})
			return err
		}})
	}
	return roles, nil
}

func patchOf(rules []rbacv1.PolicyRule) []byte {
	patch, err := json.Marshal(map[string]any{"rules": rules})
	if err != nil {
		panic(err) // strings
	}
	return patch
}

// single is the same with one verb on one resource in each rule.
func single(rules []rbacv1.PolicyRule) (singles []rbacv1.PolicyRule) {
	for _, rule := range rules {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				singles = append(singles, rbacv1.PolicyRule{
					APIGroups: rule.APIGroups, Resources: []string{resource}, Verbs: []string{verb}, ResourceNames: rule.ResourceNames,
				})
			}
		}
	}
	return singles
}

// serviceAccountKubeconfig writes the overlay's kubeconfig with the paths that its files have here.
func serviceAccountKubeconfig(ctx context.Context, dir string, cluster *lab.Cluster) (path string, err error) {
	token, err := cluster.Client().CoreV1().ServiceAccounts(site.Namespace).CreateToken(ctx, checkpointerName, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	tokenFile := filepath.Join(dir, "token")
	if err := os.WriteFile(tokenFile, []byte(token.Status.Token), 0o600); err != nil {
		return "", err
	}
	config, err := clientcmd.LoadFromFile("../deploy/overlays/rbac/kubeconfig")
	if err != nil {
		return "", err
	}
	config.Clusters["cluster"].Server = "https://" + lab.APIAddress + ":6443"
	config.Clusters["cluster"].CertificateAuthority = filepath.Join(cluster.PKI(), "ca.crt")
	config.AuthInfos[checkpointerName].TokenFile = tokenFile
	path = filepath.Join(dir, "kubeconfig")
	return path, clientcmd.WriteToFile(*config, path)
}

// referringPod makes a node, and on it a parent that refers to an object of each kind.
func referringPod(ctx context.Context, cluster *lab.Cluster) error {
	manifest, err := os.ReadFile("testdata/referring-pod.yaml")
	if err != nil {
		return err
	}
	return site.Soon(ctx, "the pod", func(ctx context.Context) error { return cluster.Apply(ctx, manifest) }, cluster.ControllerManager)
}
