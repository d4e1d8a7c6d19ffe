// Package reading keeps account of what was read of something that others change too: a
// volume group, a zpool. It says what is to be read again, and which answers are news.
//
// Reading takes a while, and meanwhile others change things, more is asked, and own
// changes are made. So an answer may not say how things are when it comes, but how they
// were when it was asked for. Nothing that was noticed is ever lost: something is due until
// an answer was taken in that was asked for later than the last change was noticed.
//
// The rejected alternative is a flag that is taken down when the question is asked. When
// the answer comes to nothing, because the reader gave up or because an own change overtook
// it, nobody remembers that it was needed.
package reading
