import type { WidgetConfig } from '../types.ts'
import { focusColor } from './contrast.ts'
import { element, icon, setAttributes } from './elements.ts'
import { collapseIcon } from './icons.ts'
import { launcherColors } from './launcher-colors.ts'
import type { LauncherHost, LauncherOptions } from './launcher-host.ts'
import widgetCss from './widget.css?inline'

export type Theme = 'auto' | 'light' | 'dark'

export interface ShellOptions extends LauncherOptions {
  /** Parent of the widget's element; `body` if left out. */
  container?: HTMLElement
  /** `auto`, which follows the visitor's system, if left out. */
  theme?: Theme
}

export type Shell = ReturnType<typeof createShell>

/** The launcher's element with the styles, colour scheme and language of the chat. */
export function createShell(launcherHost: LauncherHost, { container, theme = 'auto' }: ShellOptions) {
  const { host, root, frame, button } = launcherHost
  const prefersDark = matchMedia('(prefers-color-scheme: dark)')
  const sheet = new CSSStyleSheet()
  const badge = element('span', { class: 'badge', 'aria-hidden': 'true', hidden: true })
  const collapse = icon(collapseIcon, 'icon collapse')
  let appearance: WidgetConfig['appearance'] | undefined
  sheet.replaceSync(widgetCss)
  const own = root.adoptedStyleSheets.length
  const added = new Set<string>()
  root.adoptedStyleSheets.push(sheet)
  button.append(collapse, badge)
  prefersDark.addEventListener('change', color)
  if (!host.isConnected) (container ?? document.body).append(host)

  return {
    frame,
    button,

    /** Leaves the launcher's element as it was, and off the page. */
    remove() {
      host.remove()
      prefersDark.removeEventListener('change', color)
      root.adoptedStyleSheets.splice(own)
      collapse.remove()
      badge.remove()
    },

    setAppearance(next: WidgetConfig['appearance'] | undefined) {
      appearance = next
      if (next) launcherHost.setAppearance(next)
      color()
    },

    setTheme(next: Theme) {
      theme = next
      color()
    },

    /** Adds a style sheet. */
    addStyles(css: string) {
      if (added.has(css)) return
      added.add(css)
      const later = new CSSStyleSheet()
      later.replaceSync(css)
      root.adoptedStyleSheets.push(later)
    },

    /** Out of sight, as while the page is pictured. */
    conceal: (isHidden: boolean) => frame.toggleAttribute('data-concealed', isHidden),

    setLocale: (locale: string) => setAttributes(frame, { lang: locale, dir: directionOf(locale) }),

    /** Sets the launcher's label and badge. */
    setLauncher(label: string, isOpen: boolean, unread: number, isShown: boolean) {
      button.hidden = !isShown
      badge.hidden = unread === 0
      badge.textContent = unread > 9 ? '9+' : String(unread)
      setAttributes(button, { 'aria-expanded': String(isOpen), 'aria-label': label })
    },

    /** The focused element inside the widget. */
    focused: () => root.activeElement,
  }

  function color() {
    const isDark = theme === 'dark' || (theme !== 'light' && prefersDark.matches)
    const scheme = isDark ? 'dark' : 'light'
    frame.dataset.scheme = scheme
    frame.style.setProperty('--focus', focusColor(launcherColors(appearance?.accentColor).accent, scheme))
  }
}

/** The direction of a language's script. `Intl.Locale` knows it too, but not in every browser. */
export function directionOf(locale: string): 'ltr' | 'rtl' {
  return /^(ar|dv|fa|he|ps|sd|ug|ur|yi)\b/i.test(locale) ? 'rtl' : 'ltr'
}
