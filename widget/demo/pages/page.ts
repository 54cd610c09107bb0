import type { Customer } from '../customers.ts'
import { type Html, html } from './html.ts'

export interface Page {
  title: string
  main: Html
}

export interface PageSettings {
  siteKey: string
  gatewayUrl: string
  /** Shell command with which a reader of the page can reply as an agent. The page shows it. */
  agentCommand?: string
  /** True if the shop's backend can sign assertions. */
  signsIdentity: boolean
}

/** Avatar with the customer's initials. */
export const mark = ({ name }: Customer): Html =>
  html`<span class="mark" aria-hidden="true">${name.replaceAll(/\B\S|\s/g, '')}</span>`
