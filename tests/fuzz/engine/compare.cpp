// Reports compared values to libFuzzer, so that it can guess the other side. The
// linker redirects every call of memcmp and bcmp to these functions (--wrap),
// including those of dependencies and of the standard library.

#include <cstddef>

extern "C" {

int __real_memcmp(const void *one, const void *other, size_t size);

void __sanitizer_weak_hook_memcmp(void *caller, const void *one, const void *other, size_t size, int result);

int __wrap_memcmp(const void *one, const void *other, size_t size) {
  int result = __real_memcmp(one, other, size);
  if (result != 0)
    __sanitizer_weak_hook_memcmp(__builtin_return_address(0), one, other, size, result);
  return result;
}

int __wrap_bcmp(const void *one, const void *other, size_t size) {
  int result = __real_memcmp(one, other, size);
  if (result != 0)
    __sanitizer_weak_hook_memcmp(__builtin_return_address(0), one, other, size, result);
  return result;
}

}
