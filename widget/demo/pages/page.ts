import type { Customer } from '../customers.ts'
import { type Html, html } from './html.ts'

export interface Page {
  title: string
  main: Html
}

export interface PageSettings {
  siteKey: string
  gatewayUrl: string
  /** Shell command that replies to the visitor as an agent. The workbench shows this command. */
  agentCommand?: string
  /** True if the shop's backend can sign assertions. */
  signsIdentity: boolean
}

/** Avatar with the customer's initials. */
export const mark = ({ name }: Customer): Html =>
  html`<span class="mark" aria-hidden="true">${name.replaceAll(/\B\S|\s/g, '')}</span>`
