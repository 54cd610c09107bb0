import type { SessionContent, VisitorCredentials } from '../sessions/model.ts'

/** Origin of every test visitor's page. */
export const site = 'https://shop.example'

export const credentialsOf = ({ accessGrant }: SessionContent): VisitorCredentials => ({ accessGrant, origin: site })
