/* A shared library that is no plugin. */
int ringlab_plugin_v0(void) { return 0; }
