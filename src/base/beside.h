/* Files that are installed with the program: in its folder, or in ../libexec. Any thread. */
#ifndef BASE_BESIDE_H
#define BASE_BESIDE_H

/* Opens one, with flags of open. -1: there is none that belongs to our user or root and that no
 * other user may write: in a shared folder others could put their own file beside the program. */
int beside_open(const char *name, int flags);

#endif
