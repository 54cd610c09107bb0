import { useEffect, useRef, useState, useSyncExternalStore } from 'react'
import type { WidgetEventMap, WidgetEventName } from '../events.ts'
import { createServiceWidget } from '../ui/service-widget.ts'
import type { ServiceWidgetOptions, ServiceWidget as Widget } from '../ui/service-widget-types.ts'

export interface ServiceWidgetProps extends ServiceWidgetOptions {
  /** Called with the mounted widget. */
  onReady?: (widget: Widget) => void
}

/**
 * Shows the chat while the component is mounted. Renders nothing itself, also on a server: the chat
 * is a shadow tree at the end of the page's body.
 */
export function ServiceWidget({ onReady, ...options }: ServiceWidgetProps): null {
  const widget = useServiceWidget(options)
  const latest = useRef(onReady)
  useEffect(() => {
    latest.current = onReady
  })
  useEffect(() => {
    if (widget) latest.current?.(widget)
  }, [widget])
  return null
}

/**
 * Mounts the chat while the calling component is mounted, and returns it. Returns undefined on a
 * server, during hydration and after the component was removed.
 *
 * Another `siteKey` or `apiBaseUrl` creates another chat. `theme` and `locale` are applied at once.
 * Functions may change with each render. Changes of other options have no effect.
 */
export function useServiceWidget(options: ServiceWidgetOptions): Widget | undefined {
  const { siteKey, apiBaseUrl, theme = 'auto', locale } = options
  const [widget, setWidget] = useState<Widget>()
  const latest = useRef(options)
  useEffect(() => {
    latest.current = options
  })
  useEffect(() => {
    const { identityProvider, pageContext } = latest.current
    // In strict mode, React removes and repeats each effect at once. The chat is created afterwards,
    // so that only one session begins.
    let created: Widget | undefined
    const timer = setTimeout(() => {
      created = createServiceWidget({
        ...latest.current,
        ...(identityProvider && { identityProvider: (...given) => latest.current.identityProvider!(...given) }),
        ...(pageContext && { pageContext: () => latest.current.pageContext!() }),
      })
      void created.mount()
      setWidget(created)
    })
    return () => {
      clearTimeout(timer)
      created?.unmount()
      setWidget(undefined)
    }
  }, [siteKey, apiBaseUrl])
  useEffect(() => {
    widget?.setTheme(theme)
  }, [widget, theme])
  useEffect(() => {
    widget?.setLocale(locale)
  }, [widget, locale])
  return widget
}

/** Calls the handler for each event of the chat. The handler may change with each render. */
export function useWidgetEvent<Name extends WidgetEventName>(
  widget: Widget | undefined,
  name: Name,
  handler: (payload: WidgetEventMap[Name]) => void,
): void {
  const latest = useRef(handler)
  useEffect(() => {
    latest.current = handler
  })
  useEffect(() => widget?.on(name, (payload) => latest.current(payload)), [widget, name])
}

/** Returns the number of unread messages, and renders again when it changes. */
export function useUnreadCount(widget: Widget | undefined): number {
  return useSyncExternalStore(
    (onChange) => widget?.on('unread.changed', onChange) ?? ignore,
    () => widget?.unreadCount() ?? 0,
    () => 0,
  )
}

function ignore() {}
