import { useEffect, useRef, useState, useSyncExternalStore } from 'react'
import { createServiceWidgetLoader } from '../loader-entry.ts'
import type { ServiceWidgetLoader } from '../ui/launcher/launcher.ts'
import type { ServiceWidgetOptions, ServiceWidget as Widget } from '../ui/widget.ts'
import type { WidgetEventMap, WidgetEventName } from '../vocabulary/types.ts'

export interface ServiceWidgetProps extends ServiceWidgetOptions {
  /** Called with the widget when the chat was loaded. */
  onReady?: (widget: Widget) => void
}

/**
 * Shows the launcher while the component is mounted. The chat is loaded and a session is created
 * when the visitor opens it; a session of the tab is resumed at once. Renders nothing itself, also
 * on a server: the chat is a shadow tree at the end of the page's body.
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
 * Shows the launcher while the calling component is mounted. Returns the widget once the chat was
 * loaded. Returns undefined before that, on a server and during hydration.
 *
 * Another `siteKey` or `apiBaseUrl` creates another chat. `theme` and `locale` are applied at once.
 * Functions may change with each render. Changes of other options have no effect.
 */
export function useServiceWidget(options: ServiceWidgetOptions): Widget | undefined {
  const [widget, setWidget] = useState<Widget>()
  useServiceWidgetLoader(options, setWidget)
  return widget
}

/**
 * Shows the launcher like `useServiceWidget`, and returns its loader. `loader.open()` loads and
 * opens the chat, for example when the visitor presses a button of the page.
 *
 * @param onWidget called with the widget when the chat was loaded, and with undefined when it was
 * removed
 */
export function useServiceWidgetLoader(
  options: ServiceWidgetOptions,
  onWidget: (widget: Widget | undefined) => void = ignore,
): ServiceWidgetLoader | undefined {
  const { siteKey, apiBaseUrl, theme = 'auto', locale } = options
  const [loader, setLoader] = useState<ServiceWidgetLoader>()
  const [widget, setWidget] = useState<Widget>()
  const latest = useRef({ options, onWidget })
  useEffect(() => {
    latest.current = { options, onWidget }
  })
  function take(next: Widget | undefined) {
    setWidget(next)
    latest.current.onWidget(next)
  }
  // The chat is loaded later than the launcher, and gets the options of that time.
  useEffect(() => {
    widget?.setTheme(theme)
  }, [widget, theme])
  useEffect(() => {
    widget?.setLocale(locale)
  }, [widget, locale])
  useEffect(() => {
    // In strict mode, React removes and repeats each effect at once. The page still sends one request.
    let created: ServiceWidgetLoader | undefined
    const timer = setTimeout(() => {
      created = createServiceWidgetLoader({ ...latest.current.options, ...callbacks(latest) }, take)
      setLoader(created)
    })
    return () => {
      clearTimeout(timer)
      created?.remove()
      take(undefined)
      setLoader(undefined)
    }
  }, [siteKey, apiBaseUrl])
  // The client takes functions when it is created. If the page has none yet, it configures them later.
  const given = [options.identityProvider, options.pageContext].map(Boolean).join()
  const configured = useRef(given)
  useEffect(() => {
    if (loader && configured.current !== given) loader.configure(callbacks(latest))
    configured.current = given
  }, [loader, given])
  return loader
}

/** Returns functions that call those of the latest render. */
function callbacks(latest: { current: { options: ServiceWidgetOptions } }): Partial<ServiceWidgetOptions> {
  const { identityProvider, pageContext } = latest.current.options
  return {
    identityProvider: identityProvider && (async (...given) => latest.current.options.identityProvider?.(...given)),
    pageContext: pageContext && (() => latest.current.options.pageContext?.()),
  }
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

function ignore(): void {}
