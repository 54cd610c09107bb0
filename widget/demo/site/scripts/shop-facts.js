/**
 * What the shop's backend tells its pages. No secret is among it.
 *
 * @typedef {object} ShopFacts
 * @property {string} siteKey
 * @property {string} gatewayUrl
 * @property {string} [agentCommand] answers the latest conversation as an agent
 * @property {boolean} signsIdentity
 * @property {{externalSubject: string, displayName: string}} [customer] who is signed in
 */

export {}
