export type PushProblem = 'unsupported' | 'homeScreen' | 'blocked' | 'failed'

export const pushProblems: Record<PushProblem, string> = {
  unsupported: 'This browser gets no pushes here. It needs https, and a window that is not private.',
  homeScreen:
    'Put the console on the home screen first: press Share, then Add to Home Screen. Open it there, and come back to this page.',
  blocked: 'Notifications are blocked. Allow them for this page in the settings of your browser, then try again.',
  failed: 'The browser could not reach its push service. Try again later.',
}

interface Policies {
  createPolicy(name: string, rules: { createScriptURL: () => string }): { createScriptURL(input: string): string }
}

/** A page can create one policy of this name. It returns the URL of the worker only. */
let policy: ReturnType<Policies['createPolicy']> | undefined

function workerUrl(): string {
  const url = '/console/sw.js'
  const { trustedTypes } = window as { trustedTypes?: Policies }
  policy ??= trustedTypes?.createPolicy('service-worker', { createScriptURL: () => url })
  return policy?.createScriptURL('') ?? url
}

/** Asks the operator for permission, and subscribes this browser. */
export async function subscribeBrowser(publicKey: string): Promise<PushSubscriptionJSON | PushProblem> {
  if (!('serviceWorker' in navigator && 'PushManager' in window && 'Notification' in window)) {
    const isTouchMac = navigator.userAgent.includes('Macintosh') && navigator.maxTouchPoints > 1
    return isTouchMac || /iPhone|iPad/.test(navigator.userAgent) ? 'homeScreen' : 'unsupported'
  }
  if ((await Notification.requestPermission()) !== 'granted') return 'blocked'
  try {
    await navigator.serviceWorker.register(workerUrl())
    const { pushManager } = await navigator.serviceWorker.ready
    // A subscription of another operator, or with another key of the service, is replaced.
    await (await pushManager.getSubscription())?.unsubscribe()
    return (await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: publicKey })).toJSON()
  } catch {
    return 'failed'
  }
}

export async function unsubscribeBrowser(): Promise<void> {
  const registration = await navigator.serviceWorker?.getRegistration('/console/')
  await (await registration?.pushManager.getSubscription())?.unsubscribe()
}
