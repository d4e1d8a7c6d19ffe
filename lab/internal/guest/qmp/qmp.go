// Package qmp is a client of QEMU's machine protocol: JSON messages over a
// unix socket that serves one client at a time.
package qmp

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
)

// Error is a command that QEMU refused.
type Error struct {
	Command     string `json:"-"`
	Class       string `json:"class"`
	Description string `json:"desc"`
}

func (e *Error) Error() string { return fmt.Sprintf("QEMU refused %s: %s", e.Command, e.Description) }

// Client is a connection ready for commands. It is not safe for concurrent use.
type Client struct {
	conn   net.Conn
	in     *json.Decoder
	out    *json.Encoder
	events []string
}

// message is anything QEMU sends: a greeting, an answer or an event.
type message struct {
	QMP    json.RawMessage `json:"QMP"`
	Return json.RawMessage `json:"return"`
	Error  *Error          `json:"error"`
	Event  string          `json:"event"`
	Data   json.RawMessage `json:"data"`
}

// Dial connects and negotiates. It waits while another client is connected,
// and for ever when the QEMU process is stopped: ctx bounds it.
func Dial(ctx context.Context, socket string) (*Client, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("connecting to QEMU: %w", err)
	}
	c := &Client{conn: conn, in: json.NewDecoder(conn), out: json.NewEncoder(conn)}
	if err := c.greet(ctx); err != nil {
		conn.Close()
		return nil, fmt.Errorf("connecting to QEMU: %w", err)
	}
	return c, nil
}

func (c *Client) greet(ctx context.Context) error {
	defer c.closeWhenDone(ctx)()
	var greeting message
	if err := c.in.Decode(&greeting); err != nil {
		return describe(ctx, err)
	}
	if greeting.QMP == nil {
		return fmt.Errorf("no greeting from QEMU")
	}
	return c.Execute(ctx, "qmp_capabilities", nil, nil)
}

// Close ends the connection.
func (c *Client) Close() error { return c.conn.Close() }

// Execute runs a command and decodes its answer into result, which may be nil.
// A refusal is an [Error]. After any other error the client cannot be used any more.
func (c *Client) Execute(ctx context.Context, command string, arguments, result any) error {
	defer c.closeWhenDone(ctx)()
	request := struct {
		Execute   string `json:"execute"`
		Arguments any    `json:"arguments,omitempty"`
	}{command, arguments}
	if err := c.out.Encode(request); err != nil {
		return fmt.Errorf("sending %s to QEMU: %w", command, describe(ctx, err))
	}
	for {
		var m message
		if err := c.in.Decode(&m); err != nil {
			return fmt.Errorf("reading QEMU's answer to %s: %w", command, describe(ctx, err))
		}
		switch {
		case m.Event != "":
			c.events = append(c.events, eventKey(m))
		case m.Error != nil:
			m.Error.Command = command
			return m.Error
		case result != nil:
			if err := json.Unmarshal(m.Return, result); err != nil {
				return fmt.Errorf("decoding QEMU's answer to %s: %w", command, err)
			}
			return nil
		default:
			return nil
		}
	}
}

// WaitDeleted waits until the device is gone, which is some time after the
// command that asks for it.
func (c *Client) WaitDeleted(ctx context.Context, device string) error {
	defer c.closeWhenDone(ctx)()
	want := "DEVICE_DELETED " + device
	for {
		if slices.Contains(c.events, want) {
			return nil
		}
		var m message
		if err := c.in.Decode(&m); err != nil {
			return fmt.Errorf("waiting for the removal of %s: %w", device, describe(ctx, err))
		}
		if m.Event != "" {
			c.events = append(c.events, eventKey(m))
		}
	}
}

func eventKey(m message) string {
	var data struct {
		Device string `json:"device"`
	}
	if json.Unmarshal(m.Data, &data) != nil {
		return m.Event
	}
	return m.Event + " " + data.Device
}

// closeWhenDone closes the connection when ctx ends, and so ends any wait on it.
func (c *Client) closeWhenDone(ctx context.Context) (stop func()) {
	cancel := context.AfterFunc(ctx, func() { c.conn.Close() })
	return func() { cancel() }
}

// describe returns the cause of the end of ctx, which closed the connection, or else err.
func describe(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
