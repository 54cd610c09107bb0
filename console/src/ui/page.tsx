import type { ComponentChildren } from 'preact'
import { Icon } from './icon.tsx'

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

/** Shows names and values in two columns. */
export function Facts({ children }: { children: ComponentChildren }) {
  return <dl class="facts">{children}</dl>
}

export function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  if (children === undefined || children === null || children === '' || children === false) return null
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}

/** The text of a row of a table: what it is, above what is known of it. */
export const RowText = ({ title, children }: Pick<PageProps, 'title' | 'children'>) => (
  <span class="table-main">
    <bdi class="table-title breakable">{title}</bdi>
    <span class="table-sub ellipsis">{children}</span>
  </span>
)
