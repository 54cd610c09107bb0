// With these types, the package is built without Vue, which the application provides.
declare module 'vue' {
  export interface ShallowRef<Value> {
    value: Value
  }
  export function onMounted(hook: () => void): void
  export function shallowRef<Value>(): ShallowRef<Value | undefined>
  export function watch<Value>(
    source: () => Value,
    onChange: (value: Value, before: Value | undefined, onCleanup: (cleanup: () => void) => void) => void,
    options?: { immediate: true },
  ): void
  export function watchEffect(effect: () => void): void
}
