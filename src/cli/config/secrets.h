/* Hides from other processes what this one was started with: its environment, its command line, its
 * memory. */
#ifndef CLI_CONFIG_SECRETS_H
#define CLI_CONFIG_SECRETS_H

/* First thing in main, before any thread: other processes of this user cannot look into this one
 * from now on, /proc/PID/environ shows only what handlers get anyway, and addresses with a password
 * are gone from the command line. Returns the arguments to use from then on, for free(). */
char **secrets_hide(int argc, char **argv);

#endif
