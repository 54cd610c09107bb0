import { type Timestamp, timestampDate } from '@bufbuild/protobuf/wkt'
import { signal } from '@preact/signals'
import type { ButtonHTMLAttributes, ComponentChildren } from 'preact'
import type { Failure } from '../failures.ts'
import { dateOf, formatDistance, formatFull, formatShort, formatTime } from '../time.ts'

/** Outlines of the icons on a grid of 24 units, drawn in the text colour. */
const paths = {
  inbox: 'M4 5h16v10h-5l-3 4-3-4H4z',
  leads: 'M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4 20c1-4 4-6 8-6s7 2 8 6',
  team: 'M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM3 20c.6-3.6 2.8-5.5 6-5.5s5.4 1.9 6 5.5M16 4.5a3.5 3.5 0 0 1 0 6.5M18 15c1.7.8 2.7 2.5 3 5',
  deliveries: 'M3 11l18-7-7 17-3-7zM11 14L21 4',
  subscriptions: 'M5 19a4 4 0 0 1 4-4M5 12a7 7 0 0 1 7 7M5 5a14 14 0 0 1 14 14',
  suppressions: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM5.6 5.6l12.8 12.8',
  installations: 'M4 5h16v14H4zM4 9h16M7 7h.01M10 7h.01',
  search: 'M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM16 16l4 4',
  back: 'M15 5l-7 7 7 7',
  close: 'M6 6l12 12M18 6L6 18',
  check: 'M5 12.5l4.5 4.5L19 7',
  send: 'M5 12h13M12 6l6 6-6 6',
  info: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM12 11v5M12 8h.01',
  warning: 'M12 4l9 16H3zM12 10v4M12 17h.01',
  help: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM9.5 9.5a2.5 2.5 0 1 1 3.5 2.3c-.7.3-1 .8-1 1.7M12 17h.01',
  leave: 'M10 5H5v14h5M10 12h10M16 8l4 4-4 4',
  camera: 'M4 8h4l1.5-2h5L16 8h4v11H4zM12 16.5a3 3 0 1 0 0-6 3 3 0 0 0 0 6z',
  report: 'M4 20V11M10 20V4M16 20v-7M3 20h18',
  tag: 'M4 4h7l9 9-7 7-9-9zM8 8h.01',
  link: 'M10 14a4 4 0 0 0 6 0l3-3a4 4 0 0 0-6-6l-1 1M14 10a4 4 0 0 0-6 0l-3 3a4 4 0 0 0 6 6l1-1',
  replies: 'M10 7L5 12l5 5M5 12h9a5 5 0 0 1 5 5v1',
  people: 'M12 3l7 3v5c0 5-3 8-7 10-4-2-7-5-7-10V6zM9 12l2 2 4-4',
  workspace: 'M4 7h9M17 7h3M4 17h3M11 17h9M15 9a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM9 19a2 2 0 1 0 0-4 2 2 0 0 0 0 4z',
  plus: 'M12 5v14M5 12h14',
  refresh: 'M20 11a8 8 0 1 0-2 6M20 5v6h-6',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  bell: 'M6 17V11a6 6 0 0 1 12 0v6l2 2H4zM10 21h4',
  'bell-off': 'M6 17V11a6 6 0 0 1 12 0v6l2 2H4zM10 21h4M4 4l16 16',
  up: 'M6 15l6-6 6 6',
  down: 'M6 9l6 6 6-6',
  trash: 'M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13',
} as const

export type IconName = keyof typeof paths

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
      <path d={paths[name]} />
    </svg>
  )
}

export interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  kind?: string
  icon?: IconName | undefined
  text?: string
}

/** A button. `kind` is a list of style classes such as `primary` and `small`. */
export function Button({ kind = '', icon, text, children, ...attributes }: ButtonProps) {
  return (
    <button type="button" class={`button ${kind}`} {...attributes}>
      {icon && <Icon name={icon} />}
      {text}
      {children}
    </button>
  )
}

export function IconButton({
  icon,
  label,
  ...attributes
}: ButtonHTMLAttributes<HTMLButtonElement> & { icon: IconName; label: string }) {
  return (
    <button type="button" class="icon-button" aria-label={label} {...attributes}>
      <Icon name={icon} />
    </button>
  )
}

const icons = { info: 'info', success: 'check', warning: 'warning', danger: 'warning' } as const

interface NoticeProps {
  tone: keyof typeof icons
  children: ComponentChildren
  action?: ComponentChildren
}

export function Notice({ tone, children, action }: NoticeProps) {
  return (
    <div class={`notice ${tone}`} role={tone === 'danger' ? 'alert' : undefined}>
      <Icon name={icons[tone]} />
      <div class="notice-text">{children}</div>
      {action}
    </div>
  )
}

/** An error message, with a retry button if a retry can help. */
export function FailureNotice({ failure, retry }: { failure: Failure | undefined; retry?: () => void }) {
  if (!failure) return null
  const action = retry && !failure.missing && <Button kind="small" onClick={retry} text="Try again" />
  return (
    <Notice tone="danger" action={action}>
      {failure.text}
    </Notice>
  )
}

/** Placeholder of a view without content. `children` explain the next step. */
export function Empty({ icon, title, children }: { icon: IconName; title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <Icon name={icon} />
      <h2>{title}</h2>
      {children}
    </div>
  )
}

/** Placeholder while content is loading. It appears after a short delay. */
export function Loading({ label }: { label: string }) {
  return (
    <div class="stack loading">
      <span class="visually-hidden">{label}</span>
      <span class="bar" />
      <span class="bar" />
      <span class="bar" />
    </div>
  )
}

interface WhenProps {
  at: Timestamp | undefined
  full?: boolean
  /** Shows the time of day only, for entries below a heading with their date. */
  timeOnly?: boolean
}

/** Shows a short form of a time, with the full date as tooltip. */
export function When({ at, full, timeOnly }: WhenProps) {
  const date = dateOf(at)
  if (!date) return null
  const text = full ? formatFull(date) : timeOnly ? formatTime(date) : formatShort(date, new Date())
  return (
    // Browsers that translate a page replace its texts, so a changed text needs a new element.
    <time key={text} dateTime={date.toISOString()} title={formatFull(date)}>
      {text}
    </time>
  )
}

const minute = signal(Date.now())
setInterval(() => {
  minute.value = Date.now()
}, 30_000)

export function Waiting({ since }: { since: Timestamp }) {
  const date = timestampDate(since)
  const minutes = Math.max(0, Math.floor((minute.value - date.getTime()) / 60_000))
  return (
    <time class="waiting" key={minutes} dateTime={date.toISOString()} title={`Waiting since ${formatFull(date)}`}>
      {minutes < 1 ? (
        'just now'
      ) : (
        <>
          <span class="waiting-word">waiting </span>
          {minutes < 90 ? `${minutes} min` : formatDistance(minutes * 60_000)}
        </>
      )}
    </time>
  )
}

interface PageProps {
  title: ComponentChildren
  back?: { path: string; label: string }
  actions?: ComponentChildren
  lead?: ComponentChildren
  children: ComponentChildren
}

/** The frame of a view: heading, actions and back link. */
export function Page({ title, back, actions, lead, children }: PageProps) {
  return (
    <div class="page">
      <header class="page-head">
        {back && (
          <a class="back-link" href={back.path}>
            <Icon name="back" />
            {back.label}
          </a>
        )}
        <div class="page-title">
          <div class="page-title-text">
            <h1 tabIndex={-1}>{title}</h1>
            {lead && <p class="page-lead">{lead}</p>}
          </div>
          {actions && <div class="line">{actions}</div>}
        </div>
      </header>
      {children}
    </div>
  )
}

interface CardProps extends Pick<PageProps, 'actions' | 'children'> {
  title: string
  /** True if a script moves the focus to the title. */
  focusable?: boolean
}

export function Card({ title, focusable, actions, children }: CardProps) {
  return (
    <section class="card" aria-label={title}>
      <header class="card-head">
        <h2 tabIndex={focusable ? -1 : undefined}>{title}</h2>
        {actions && <div class="line">{actions}</div>}
      </header>
      <div class="stack card-body">{children}</div>
    </section>
  )
}

/** Shows names and values in two columns. Omits names without a value. */
export function Facts({ of }: { of: readonly (readonly [name: string, value: ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {of.map(([name, value]) =>
        value === undefined || value === null || value === '' || value === false ? null : (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ),
      )}
    </dl>
  )
}

/** The text of a row of a table: what it is, above what is known of it. */
export const RowText = ({ title, children }: Pick<PageProps, 'title' | 'children'>) => (
  <span class="table-main">
    <bdi class="table-title breakable">{title}</bdi>
    <span class="table-sub ellipsis">{children}</span>
  </span>
)
