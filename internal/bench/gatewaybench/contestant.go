package gatewaybench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"hecate/internal/bench/tail"
)

// contestant is one way from the client to the upstream.
type contestant struct {
	name string
	url  string
	cmds []*exec.Cmd
	done []chan struct{}
	errs tail.Writer
}

const startTime = 60 * time.Second

// launch starts a program that ends with us; each line that it prints is told.
func (c *contestant) launch(program string, args []string, line func(string)) error {
	cmd := exec.Command(program, args...)
	cmd.SysProcAttr = endsWithUs()
	cmd.Stderr = &c.errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	started, done := make(chan error, 1), make(chan struct{})
	go func() {
		runtime.LockOSThread() // the kernel ends a child when the thread that made it ends
		defer runtime.UnlockOSThread()
		defer close(done)
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			line(lines.Text())
		}
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start %s: %w", program, err)
	}
	c.cmds, c.done = append(c.cmds, cmd), append(c.done, done)
	return nil
}

// spawn starts this very program and waits for the line that tells its address.
func (c *contestant) spawn(ctx context.Context, address func(string) string, args ...string) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	found := make(chan string, 1)
	err = c.launch(exe, args, func(line string) {
		if v := address(line); v != "" {
			select {
			case found <- v:
			default:
			}
		}
	})
	if err != nil {
		return err
	}
	select {
	case c.url = <-found:
		return nil
	case <-c.done[0]:
		return fmt.Errorf("%s ended by itself", c.name)
	case <-time.After(startTime):
		return fmt.Errorf("%s is not ready after %s", c.name, startTime)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (c *contestant) stop() {
	for i, cmd := range c.cmds {
		_ = cmd.Process.Signal(os.Interrupt)
		select {
		case <-c.done[i]:
		case <-time.After(10 * time.Second):
			_ = cmd.Process.Kill()
			<-c.done[i]
		}
	}
}

// pids are its processes, those that it started itself too.
func (c *contestant) pids() (out []int) {
	for _, cmd := range c.cmds {
		out = append(out, cmd.Process.Pid)
		children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", cmd.Process.Pid, cmd.Process.Pid))
		for pid := range strings.FieldsSeq(string(children)) {
			if n, err := strconv.Atoi(pid); err == nil {
				out = append(out, n)
			}
		}
	}
	return out
}

// cpu is the processor time so far, by the scheduler's own account, which is finer
// than the ticks of /proc/PID/stat.
func (c *contestant) cpu() (sum time.Duration) {
	for _, pid := range c.pids() {
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
		for _, t := range tasks {
			b, err := os.ReadFile(t)
			if fields := strings.Fields(string(b)); err == nil && len(fields) > 0 {
				n, _ := strconv.ParseInt(fields[0], 10, 64)
				sum += time.Duration(n)
			}
		}
	}
	return sum
}

// memory is what its processes hold, in bytes.
func (c *contestant) memory() (sum int64) {
	for _, pid := range c.pids() {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		for line := range strings.Lines(string(b)) {
			if v, ok := strings.CutPrefix(line, "VmRSS:"); ok {
				n, _ := strconv.ParseInt(strings.Fields(v)[0], 10, 64)
				sum += n << 10
			}
		}
	}
	return sum
}

func ownPart(ctx context.Context, name string, args ...string) (*contestant, error) {
	c := &contestant{name: name}
	err := c.spawn(ctx, func(line string) string {
		if strings.HasPrefix(line, "http://") {
			return line
		}
		return ""
	}, append([]string{"bench", "gateway-part"}, args...)...)
	return c, err
}

// hecate is this program, serving one engine and no model.
func hecate(ctx context.Context, dir, upstream string) (*contestant, error) {
	c := &contestant{name: "hecate"}
	data := filepath.Join(dir, "hecate")
	err := c.spawn(ctx, func(line string) string {
		var e struct{ Event, URL string }
		if json.Unmarshal([]byte(line), &e) != nil || e.Event != "ready" {
			return ""
		}
		return e.URL
	}, "serve", "--json", "--no-model", "--listen", "127.0.0.1:0", "--data", data, "--token-uses", "0")
	if err != nil {
		return c, err
	}
	exe, err := os.Executable()
	if err != nil {
		return c, err
	}
	out, err := exec.CommandContext(ctx, exe, "engine", "add", "upstream", upstream, "--data", data).CombinedOutput()
	if err != nil {
		return c, fmt.Errorf("register the upstream: %w: %s", err, out)
	}
	return c, c.answers(ctx)
}

const nginxConfig = `daemon off;
worker_processes 1;
pid DIR/nginx.pid;
error_log /dev/null;
events { worker_connections 1024; }
http {
  access_log off;
  client_body_temp_path DIR/b; proxy_temp_path DIR/p; fastcgi_temp_path DIR/f; uwsgi_temp_path DIR/u; scgi_temp_path DIR/s;
  client_max_body_size 32m; client_body_buffer_size 1m;
  keepalive_requests 1000000;
  upstream up { server UPSTREAM; keepalive 64; keepalive_requests 1000000; }
  server {
    listen 127.0.0.1:PORT;
    location / { proxy_pass http://up; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; }
  }
}
`

const haproxyConfig = `global
  nbthread 1
  maxconn 1024
defaults
  mode http
  option http-no-delay
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend in
  bind 127.0.0.1:PORT
  default_backend up
backend up
  http-reuse always
  server up UPSTREAM
`

// installed is a program of the system, configured to do nothing but pass on.
func installed(ctx context.Context, dir, upstream, name, config string, args ...string) (*contestant, error) {
	program, err := exec.LookPath(name)
	if err != nil {
		program, err = exec.LookPath("/usr/sbin/" + name)
	}
	if err != nil {
		return nil, errNotInstalled
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, name+".conf")
	text := strings.NewReplacer("DIR", dir, "UPSTREAM", strings.TrimPrefix(upstream, "http://"), "PORT", strconv.Itoa(port)).Replace(config)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("write %s's configuration: %w", name, err)
	}
	c := &contestant{name: name, url: "http://127.0.0.1:" + strconv.Itoa(port)}
	if err := c.launch(program, append(args, file), func(string) {}); err != nil {
		return nil, err
	}
	return c, c.answers(ctx)
}

var errNotInstalled = errors.New("it is not installed")

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// answers waits until requests get through.
func (c *contestant) answers(ctx context.Context) error {
	for end := time.Now().Add(startTime); ; time.Sleep(50 * time.Millisecond) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+"/v1/models", nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			b, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if strings.Contains(string(b), `"`+Model+`"`) {
				return nil
			}
		}
		if time.Now().After(end) || ctx.Err() != nil {
			return fmt.Errorf("%s does not answer: %w", c.name, err)
		}
	}
}
