import { onMounted, shallowRef, watch, watchEffect } from 'vue'
import {
  createServiceWidgetLoader,
  type ServiceWidget,
  type ServiceWidgetLoader,
  type ServiceWidgetOptions,
} from '../loader-entry.ts'

/**
 * Shows the launcher while the calling component is mounted, and not on a server. `loader.value` is its
 * loader, and `widget.value` the widget once the chat was loaded.
 *
 * Another `siteKey` or `apiBaseUrl` creates another chat. `theme` and `locale` are applied at once. Changes
 * of other options have no effect.
 */
export function useServiceWidget(options: () => ServiceWidgetOptions) {
  const loader = shallowRef<ServiceWidgetLoader>()
  const widget = shallowRef<ServiceWidget>()
  // Vue ends these watchers with the component.
  onMounted(() => {
    watch(
      () => [options().siteKey, options().apiBaseUrl].join(' '),
      (_, __, onCleanup) => {
        loader.value = createServiceWidgetLoader(options(), (made) => {
          widget.value = made
        })
        onCleanup(() => {
          loader.value?.remove()
          loader.value = widget.value = undefined
        })
      },
      { immediate: true },
    )
    // The chat is loaded later than the launcher, and gets the theme and the language of that time.
    watchEffect(() => widget.value?.setTheme(options().theme ?? 'auto'))
    watchEffect(() => widget.value?.setLocale(options().locale))
  })
  return { loader, widget }
}
