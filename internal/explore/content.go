package explore

// content is the content of a filesystem: the chain of all its writes, of which some made it larger. It is
// compared by identity, so it tells the truth about data whatever the epochs and
// numbers on the labels say.
type content struct {
	parent *content
	write  uint32
	depth  uint32
	hash   uint64
	size   int64 // of the filesystem
}

func (c *content) add(write uint32, by uint64) *content {
	h := (c.sum() ^ by) * 1099511628211
	return &content{parent: c, write: write, depth: c.length() + 1, hash: h ^ h>>29, size: c.extent()}
}

// grown is the content after the filesystem was made larger, which is a write of its own.
func (c *content) grown(write uint32, by uint64, size int64) *content {
	n := c.add(write, by)
	n.size = size
	return n
}

// extent is the size of the filesystem.
func (c *content) extent() int64 {
	if c == nil {
		return firstSize
	}
	return c.size
}

func (c *content) length() uint32 {
	if c == nil {
		return 0
	}
	return c.depth
}

func (c *content) sum() uint64 {
	if c == nil {
		return 14695981039346656037
	}
	return c.hash
}

// includes tells whether everything in o is in c.
func (c *content) includes(o *content) bool {
	for c.length() > o.length() {
		c = c.parent
	}
	return c == o
}

// shared is how many writes both have before they part.
func (c *content) shared(o *content) uint32 {
	for c.length() > o.length() {
		c = c.parent
	}
	for o.length() > c.length() {
		o = o.parent
	}
	for c != o {
		c, o = c.parent, o.parent
	}
	return c.length()
}
