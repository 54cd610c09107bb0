// Leads become leads of Salesforce: `npx node docs/examples/salesforce-relay.ts` (docs/crm.md).
// The names of the fields are those of the object Lead: email, FirstName, LastName, Company, …
import { CrmError, callCrm, serveRelay } from './crm-relay.ts'

const { SALESFORCE_URL = '', SALESFORCE_CLIENT_ID = '', SALESFORCE_CLIENT_SECRET = '' } = process.env
/** The API name of the external id, a custom field of the object Lead that is unique. */
const { SALESFORCE_KEY = 'Chat_Email__c', SALESFORCE_VERSION = 'v62.0' } = process.env

let token: Promise<string> | undefined

/** Returns an access token of the client credentials flow. */
async function signIn(signal: AbortSignal): Promise<string> {
  const { body } = await callCrm(`${SALESFORCE_URL}/services/oauth2/token`, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: SALESFORCE_CLIENT_ID,
      client_secret: SALESFORCE_CLIENT_SECRET,
    }),
    signal,
  }).catch((error) => {
    token = undefined
    // A refused sign-in is answered with 400. It is no fault of the lead.
    throw new CrmError(`sign-in failed: ${error.message}`)
  })
  return body.access_token
}

serveRelay(async (email, { email: Email, ...fields }, signal) => {
  const url = `${SALESFORCE_URL}/services/data/${SALESFORCE_VERSION}/sobjects/Lead/${SALESFORCE_KEY}/${encodeURIComponent(email)}`
  async function patch(lead: object, handled: number[]) {
    token ??= signIn(signal)
    const headers = { authorization: `Bearer ${await token}`, 'content-type': 'application/json' }
    return callCrm(url, { method: 'PATCH', headers, body: JSON.stringify(lead), signal }, handled)
  }
  const lead = { Email, ...fields }
  let answer = await patch(lead, [400, 401])
  // The token has expired.
  if (answer.status === 401) {
    token = undefined
    answer = await patch(lead, [400])
  }
  // A new lead needs a last name and a company. An existing one keeps those that it has.
  if (answer.code === 'REQUIRED_FIELD_MISSING')
    answer = await patch({ LastName: '[not provided]', Company: '[not provided]', ...lead }, [])
  if (!answer.body.success) throw new CrmError(`Salesforce took no lead: ${answer.code}`, answer.status === 400)
  return { record: answer.body.id, created: answer.status === 201 }
})
