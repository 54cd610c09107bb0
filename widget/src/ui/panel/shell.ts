import { focusColor, isFaint, launcherColors } from '../../../../browser/colors.ts'
import type { WidgetConfig } from '../../vocabulary/types.ts'
import { collapseIcon, element, icon, setAttributes } from '../elements/elements.ts'
import actionsCss from '../forms/actions.css?inline'
import type { LauncherHost, LauncherOptions } from '../launcher/launcher-host.ts'
import messagesCss from '../messages/messages.css?inline'
import answerCss from './answer.css?inline'
import composerCss from './composer.css?inline'
import { isField } from './own-events.ts'
import panelCss from './panel.css?inline'

export type Theme = 'auto' | 'light' | 'dark'

export interface ShellOptions extends LauncherOptions {
  /** Colour scheme. The default `auto` follows the visitor's system. */
  theme?: Theme
}

export type Shell = ReturnType<typeof createShell>

/** Adds the chat's styles, colour scheme and language to the element that contains the launcher. */
export function createShell(launcherHost: LauncherHost, { theme = 'auto' }: ShellOptions) {
  const { host, frame, button, sheets } = launcherHost
  const root = host.shadowRoot!
  const sheet = new CSSStyleSheet()
  const badge = element('span', { class: 'badge', 'aria-hidden': 'true', hidden: true })
  const collapse = icon(collapseIcon, 'icon collapse')
  sheet.replaceSync(panelCss + messagesCss + composerCss + actionsCss + answerCss)
  const own = sheets.length
  const added = new Set<string>()
  addSheet(sheet)
  button.append(collapse, badge)
  // The page sees the widget's element as the target of each event. Shortcuts leave editable targets alone.
  Object.defineProperty(host, 'isContentEditable', { configurable: true, get: () => isField(root.activeElement) })
  setTheme(theme)
  let focused: Element | null = null
  root.addEventListener('focusin', () => {
    focused = root.activeElement
  })
  root.addEventListener('focusout', () => {
    setTimeout(() => {
      focused = root.activeElement
    }, 100)
  })
  if (!host.isConnected) launcherHost.attach()

  return {
    frame,
    button,

    /** Removes the element from the page, and the chat's styles and icons from the element. */
    remove() {
      launcherHost.detach()
      sheets.splice(own)
      collapse.remove()
      badge.remove()
    },

    setAppearance(appearance: WidgetConfig['appearance'] | undefined) {
      if (appearance) launcherHost.setAppearance(appearance)
      const { accent } = launcherColors(appearance?.accentColor)
      const setColor = (name: string, colorIn: (scheme: 'light' | 'dark') => string) =>
        frame.style.setProperty(name, `light-dark(${colorIn('light')}, ${colorIn('dark')})`)
      setColor('--focus', (scheme) => focusColor(accent, scheme))
      setColor('--rim', (scheme) => (isFaint(accent, scheme) ? 'var(--control)' : 'transparent'))
    },

    setTheme,

    addStyles(css: string) {
      if (added.has(css)) return
      added.add(css)
      const later = new CSSStyleSheet()
      later.replaceSync(css)
      addSheet(later)
    },

    /** Hides the widget while a screenshot is taken. With false, shows the widget again. */
    conceal: (isHidden: boolean) => frame.toggleAttribute('data-concealed', isHidden),

    setLocale: (locale: string) => setAttributes(frame, { lang: locale, dir: directionOf(locale) }),

    setLauncher(label: string, isOpen: boolean, unread: number, isShown: boolean) {
      button.hidden = !isShown
      badge.hidden = unread === 0
      badge.textContent = unread > 9 ? '9+' : String(unread)
      setAttributes(button, { 'aria-expanded': String(isOpen), 'aria-label': label })
    },

    /** Gives the focus back if the page took the widget away for a moment, unless the page has moved it. */
    restoreFocus() {
      if (document.activeElement === document.body) (focused as HTMLElement | null)?.focus({ preventScroll: true })
    },

    focused: () => root.activeElement,
  }

  function addSheet(next: CSSStyleSheet) {
    sheets.push(next)
    root.adoptedStyleSheets = sheets
  }

  /** Without a scheme of its own, the frame has that of the visitor's system. */
  function setTheme(next: Theme) {
    frame.style.colorScheme = next === 'auto' ? '' : next
  }
}

/** Some browsers cannot determine the direction with `Intl.Locale`. */
export function directionOf(locale: string): 'ltr' | 'rtl' {
  return /^(ar|dv|fa|he|ps|sd|ug|ur|yi)\b/i.test(locale) ? 'rtl' : 'ltr'
}
