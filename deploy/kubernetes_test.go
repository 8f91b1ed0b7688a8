// Package deploy holds the tests of the files with which the gateway is run. It is a module of its
// own, because Helm and Kubernetes are libraries that nothing else needs.
package deploy

import (
	"crypto/x509"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
)

// objects are those of Kubernetes that manifests have, by their kinds.
type objects struct {
	deployments []*appsv1.Deployment
	stateful    []*appsv1.StatefulSet
	services    []*corev1.Service
	configs     []*corev1.ConfigMap
	budgets     []*policyv1.PodDisruptionBudget
	policies    []*networkingv1.NetworkPolicy
	ingresses   []*networkingv1.Ingress
	monitors    []*monitoringv1.ServiceMonitor
	rules       []*monitoringv1.PrometheusRule
}

// read decodes manifests as the types of Kubernetes' API. Fields that a type does not have are faults.
func read(t *testing.T, name, text string) (all objects) {
	t.Helper()
	for _, document := range strings.Split("\n"+text, "\n---\n") {
		if strings.TrimSpace(document) == "" {
			continue
		}
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(document), &kind); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, document)
		}
		switch kind.APIVersion + " " + kind.Kind {
		case "apps/v1 Deployment":
			all.deployments = append(all.deployments, strict[appsv1.Deployment](t, name, document))
		case "apps/v1 StatefulSet":
			all.stateful = append(all.stateful, strict[appsv1.StatefulSet](t, name, document))
		case "v1 Service":
			all.services = append(all.services, strict[corev1.Service](t, name, document))
		case "v1 ConfigMap":
			all.configs = append(all.configs, strict[corev1.ConfigMap](t, name, document))
		case "policy/v1 PodDisruptionBudget":
			all.budgets = append(all.budgets, strict[policyv1.PodDisruptionBudget](t, name, document))
		case "networking.k8s.io/v1 NetworkPolicy":
			all.policies = append(all.policies, strict[networkingv1.NetworkPolicy](t, name, document))
		case "networking.k8s.io/v1 Ingress":
			all.ingresses = append(all.ingresses, strict[networkingv1.Ingress](t, name, document))
		case "monitoring.coreos.com/v1 ServiceMonitor":
			all.monitors = append(all.monitors, strict[monitoringv1.ServiceMonitor](t, name, document))
		case "monitoring.coreos.com/v1 PrometheusRule":
			all.rules = append(all.rules, strict[monitoringv1.PrometheusRule](t, name, document))
		default:
			t.Errorf("%s: there is an object of the kind %s", name, kind.Kind)
		}
	}
	return all
}

func strict[T any](t *testing.T, name, document string) *T {
	t.Helper()
	object := new(T)
	if err := yaml.UnmarshalStrict([]byte(document), object); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, document)
	}
	return object
}

// The plain manifests are valid, and have what a deployment needs.
func TestManifests(t *testing.T) {
	var text strings.Builder
	files, err := filepath.Glob("kubernetes/*.yaml")
	if err != nil || len(files) < 2 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, file := range files {
		part, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(part)
		text.WriteString("\n---\n")
	}
	check(t, read(t, "kubernetes", text.String()), "redis://ratelimit-redis:6379/0")
}

// The chart renders to the same, for its defaults and for values that people change.
func TestChart(t *testing.T) {
	for _, tt := range []struct {
		name, values, state string
		redis               int
		monitors            int
	}{
		{"defaults", "", "redis://gw-redis:6379/0", 1, 0},
		{"a Redis of one's own", "redisURL: rediss://redis.example.com:6380/0", "rediss://redis.example.com:6380/0", 0, 0},
		{"a Redis whose URL is in a Secret", "redisURLSecret: {name: redis, key: address}", "rediss://redis.example.com:6380/0", 0, 0},
		{"everything on", "serviceMonitor: {enabled: true}\nprometheusRule: {enabled: true}\nreplicas: 5\nimage: {tag: v1.2.3}", "redis://gw-redis:6379/0", 1, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			all := read(t, tt.name, render(t, tt.values))
			check(t, all, tt.state)
			if len(all.stateful) != tt.redis || len(all.monitors) != tt.monitors || len(all.rules) != tt.monitors {
				t.Errorf("there are %d stateful sets, %d monitors and %d rules", len(all.stateful), len(all.monitors), len(all.rules))
			}
		})
	}
}

// Variables, volumes and the place of the pods are the user's, beside the chart's own.
func TestChartExtras(t *testing.T) {
	all := read(t, "extras", render(t, `
redisURLSecret: {name: redis}
networkPolicy:
  extraIngress: [{from: [{namespaceSelector: {matchLabels: {name: monitoring}}}], ports: [{port: 8081, protocol: TCP}]}]
  extraEgress: [{to: [{ipBlock: {cidr: 10.1.0.0/16}}], ports: [{port: 8000, protocol: TCP}]}]
extraEnv: [{name: HTTPS_PROXY, value: "http://proxy:3128"}]
extraVolumes: [{name: certificates, secret: {secretName: tls}}]
extraVolumeMounts: [{name: certificates, mountPath: /etc/tls, readOnly: true}]
nodeSelector: {pool: gateways}
tolerations: [{key: dedicated, operator: Equal, value: gateways, effect: NoSchedule}]
affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}
`))
	if rules := all.policies[0].Spec.Egress; rules[len(rules)-1].To[0].IPBlock.CIDR != "10.1.0.0/16" {
		t.Errorf("the gateway may reach %+v", rules)
	}
	if rules := all.policies[0].Spec.Ingress; rules[len(rules)-1].From[0].NamespaceSelector == nil {
		t.Errorf("the gateway can be reached by %+v", rules)
	}
	pod := all.deployments[0].Spec.Template.Spec
	c := pod.Containers[0]
	if len(c.Env) != 3 || c.Env[1].ValueFrom.SecretKeyRef.Name != "redis" || c.Env[1].ValueFrom.SecretKeyRef.Key != "url" || c.Env[2].Name != "HTTPS_PROXY" {
		t.Errorf("the variables are %+v", c.Env)
	}
	if len(pod.Volumes) != 2 || len(c.VolumeMounts) != 2 || c.VolumeMounts[1].MountPath != "/etc/tls" {
		t.Errorf("the volumes are %+v at %+v", pod.Volumes, c.VolumeMounts)
	}
	if pod.NodeSelector["pool"] != "gateways" || len(pod.Tolerations) != 1 || pod.Affinity == nil {
		t.Errorf("the pods are placed by %v, %v, %v", pod.NodeSelector, pod.Tolerations, pod.Affinity)
	}
}

// With a certificate, clients and the admin API use TLS, and so do probes and Prometheus.
func TestChartTLS(t *testing.T) {
	text := render(t, "tlsSecretName: gateway-tls\nserviceMonitor: {enabled: true, tlsConfig: {insecureSkipVerify: true}}")
	all := read(t, "tls", text)
	pod := all.deployments[0].Spec.Template.Spec
	c := pod.Containers[0]
	for _, probe := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
		if probe.HTTPGet.Scheme != corev1.URISchemeHTTPS {
			t.Errorf("a probe asks by %q", probe.HTTPGet.Scheme)
		}
	}
	if secret := pod.Volumes[1].Secret; secret == nil || secret.SecretName != "gateway-tls" || c.VolumeMounts[1].MountPath != "/etc/tls" {
		t.Errorf("the volumes are %+v at %+v", pod.Volumes, c.VolumeMounts)
	}
	if e := all.monitors[0].Spec.Endpoints[0]; *e.Scheme != "https" || !*e.TLSConfig.InsecureSkipVerify {
		t.Errorf("Prometheus does not use TLS: %+v", e)
	}
	file := strings.ReplaceAll(all.configs[0].Data["gateway.yaml"], "/etc/tls", withCertificate(t))
	if got := checkFile(t, file, "redis://gw-redis:6379/0"); got.TLS.Cert == "" || got.Admin.TLS.Cert == "" {
		t.Errorf("the gateway has no TLS:\n%s", file)
	}
}

// withCertificate returns a folder with a certificate, as Kubernetes mounts it.
func withCertificate(t *testing.T) string {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	server.Close()
	pair := server.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, block := range map[string]*pem.Block{"tls.crt": {Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, "tls.key": {Type: "PRIVATE KEY", Bytes: key}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// An ingress leads to the port of clients, never to the admin API.
func TestChartIngress(t *testing.T) {
	all := read(t, "ingress", render(t, "ingress: {enabled: true, className: nginx, host: llm.example.com, tlsSecretName: llm-tls, annotations: {a/b: c}}"))
	if len(all.ingresses) != 1 {
		t.Fatalf("there are %d ingresses", len(all.ingresses))
	}
	i := all.ingresses[0]
	path := i.Spec.Rules[0].HTTP.Paths
	if *i.Spec.IngressClassName != "nginx" || i.Annotations["a/b"] != "c" || i.Spec.TLS[0].SecretName != "llm-tls" || i.Spec.TLS[0].Hosts[0] != "llm.example.com" ||
		i.Spec.Rules[0].Host != "llm.example.com" || len(path) != 1 || path[0].Backend.Service.Name != "gw" || path[0].Backend.Service.Port.Name != "http" {
		t.Errorf("%+v", i.Spec)
	}
}

// The chart's alerts are those of package telemetry, in a form that Prometheus Operator takes.
func TestChartRules(t *testing.T) {
	want, err := os.ReadFile("../telemetry/prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("helm/ratelimit/files/alerts.yml")
	if err != nil || string(got) != string(want) {
		t.Errorf("the chart's alerts differ from telemetry/prometheus/alerts.yml, copy it: %v", err)
	}
	var rules monitoringv1.PrometheusRuleSpec
	spec := read(t, "rules", render(t, "prometheusRule: {enabled: true}")).rules[0].Spec
	if err := yaml.UnmarshalStrict(want, &rules); err != nil || !reflect.DeepEqual(rules, spec) {
		t.Errorf("%v: the rules are %v, want %v", err, spec, rules)
	}
}

// Prometheus sends a token that reads metrics alone, if there is one.
func TestChartMetricsToken(t *testing.T) {
	for values, want := range map[string]corev1.SecretKeySelector{
		"serviceMonitor: {enabled: true}":                               {LocalObjectReference: corev1.LocalObjectReference{Name: "ratelimit"}, Key: "RATELIMIT_ADMIN_TOKEN"},
		"serviceMonitor: {enabled: true, tokenSecret: {name: metrics}}": {LocalObjectReference: corev1.LocalObjectReference{Name: "metrics"}, Key: "token"},
	} {
		if got := *read(t, values, render(t, values)).monitors[0].Spec.Endpoints[0].Authorization.Credentials; got != want {
			t.Errorf("%s: the token is in %+v", values, got)
		}
	}
}

// Helm refuses a cluster that has not what the chart uses: a pause before the signal to stop.
func TestChartVersion(t *testing.T) {
	chart, err := loader.Load("helm/ratelimit")
	if err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string]bool{"v1.29.9": false, "v1.30.0": true, "v1.33.1-eks-1": true, "v1.34.1-gke.100": true} {
		if got := chartutil.IsCompatibleRange(chart.Metadata.KubeVersion, version); got != want {
			t.Errorf("%s: %t", version, got)
		}
	}
}

// render returns what Helm makes of the chart with values.
func render(t *testing.T, values string) string {
	t.Helper()
	chart, err := loader.Load("helm/ratelimit")
	if err != nil {
		t.Fatal(err)
	}
	given, err := chartutil.ReadValues([]byte(values))
	if err != nil {
		t.Fatal(err)
	}
	all, err := chartutil.ToRenderValues(chart, given, chartutil.ReleaseOptions{Name: "gw", Namespace: "llm"}, chartutil.DefaultCapabilities)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for name, file := range files {
		if strings.HasSuffix(name, ".yaml") {
			text.WriteString(file + "\n---\n")
		}
	}
	return text.String()
}

// check expects two gateways or more with probes and without rights, a disruption budget, a network
// policy, and a file that the gateway takes.
func check(t *testing.T, all objects, state string) {
	t.Helper()
	if len(all.deployments) != 1 || len(all.budgets) != 1 || len(all.policies) < 1 || len(all.configs) != 1 || len(all.services) < 1 {
		t.Fatalf("there are %d deployments, %d budgets, %d policies, %d files, %d services",
			len(all.deployments), len(all.budgets), len(all.policies), len(all.configs), len(all.services))
	}
	d := all.deployments[0]
	if *d.Spec.Replicas < 2 {
		t.Errorf("there are %d replicas", *d.Spec.Replicas)
	}
	labels := d.Spec.Template.Labels
	for name, selector := range map[string]*metav1.LabelSelector{
		"deployment": d.Spec.Selector, "budget": all.budgets[0].Spec.Selector, "policy": &all.policies[0].Spec.PodSelector,
	} {
		if name == "policy" && strings.HasSuffix(all.policies[0].Name, "redis") {
			continue
		}
		for key, value := range selector.MatchLabels {
			if labels[key] != value {
				t.Errorf("the selector of the %s wants %s: %s, and pods have %s", name, key, value, labels[key])
			}
		}
	}
	checkPod(t, d.Spec.Template.Spec)
	checkFile(t, all.configs[0].Data["gateway.yaml"], state)
}

func checkPod(t *testing.T, pod corev1.PodSpec) {
	t.Helper()
	c := pod.Containers[0]
	if c.LivenessProbe == nil || c.ReadinessProbe == nil || c.ReadinessProbe.HTTPGet.Path != "/readyz" || c.StartupProbe == nil {
		t.Error("a probe is missing")
	}
	s := c.SecurityContext
	if !*pod.SecurityContext.RunAsNonRoot || !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || s.Capabilities.Drop[0] != "ALL" {
		t.Error("the container has rights that it does not need")
	}
	const before, drain, readOn = 5, 30, 5 // the hook before the signal, and what the gateway takes by default
	if *pod.TerminationGracePeriodSeconds < before+drain+readOn+10 {
		t.Errorf("the grace period is %d s: streams have %d s to end, and are read on for %d s", *pod.TerminationGracePeriodSeconds, drain, readOn)
	}
	if c.Resources.Limits.Memory().IsZero() {
		t.Error("memory has no limit")
	}
}

// checkFile expects a configuration that the gateway takes, with its state, and returns it.
func checkFile(t *testing.T, text, state string) *config.Config {
	t.Helper()
	t.Setenv("RATELIMIT_ADMIN_TOKEN", "a-secret-of-some-length")
	t.Setenv("RATELIMIT_REDIS_URL", "rediss://redis.example.com:6380/0")
	t.Setenv("OPENAI_API_KEY", "a-secret-of-some-length")
	c, err := config.Parse("gateway.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if c.State != state {
		t.Errorf("the state is %s, want %s", c.State, state)
	}
	return c
}
