import { euros, isLampKind, type Lamp, type LampKind, lampKinds, lamps } from '../catalogue.ts'
import { type Html, html } from './html.ts'
import type { Page } from './layout.ts'

export function homePage(): Page {
  return {
    title: 'Lamps for long evenings',
    main: html`
      <section class="hero">
        <div>
          <p class="eyebrow">From a workshop by the sea</p>
          <h1>Lamps for long evenings.</h1>
          <p class="lead">Turned ash, blown glass, bent birch, and a light as warm as the last hour of the day. Made to order by nine people.</p>
          <a class="button" href="/lamps">See the lamps</a>
        </div>
        <img class="scene" src="/scene.svg" width="520" height="400" alt="A pendant lamp over a laid table, the sea behind the window">
      </section>
      <section aria-labelledby="loved">
        <h2 id="loved">Most loved</h2>
        <ul class="cards">${lamps.slice(0, 3).map((lamp) => card(lamp))}</ul>
      </section>
      <section class="facts" aria-label="About us">
        <div><h2>Signed by a person</h2><p>Every lamp is turned, blown and wired by hand, and bears the name of who finished it. Spare parts for life.</p></div>
        <div><h2>At your door in two weeks</h2><p>We begin when you order. Delivery within Europe is free from € 120, and you can send it back within 60 days.</p></div>
        <div><h2>Ask us anything</h2><p>Which bulb, which height, which wood? <button class="link" type="button" data-ask="Which lamp would you hang over a table for six?">Ask in the chat</button>, we are there from nine to six.</p></div>
      </section>`,
  }
}

/** Every lamp, or those of one kind. With scripts, the choice of a kind changes the page in place (`scripts/catalogue.js`). */
export function lampsPage(kind: string | undefined): Page {
  const chosen = kind !== undefined && isLampKind(kind) ? kind : undefined
  const choice = (address: string, name: string, isChosen: boolean) =>
    html`<a href="${address}"${isChosen ? html` aria-current="page"` : undefined}>${name}</a>`
  return {
    title: chosen ? lampKinds[chosen] : 'All lamps',
    main: html`
      <h1 data-lamps-title>${chosen ? lampKinds[chosen] : 'All lamps'}</h1>
      <nav class="kinds" aria-label="Kinds of lamps" data-kinds>
        ${choice('/lamps', 'All lamps', !chosen)}
        ${(Object.keys(lampKinds) as LampKind[]).map((one) => choice(`/lamps/${one}`, lampKinds[one], one === chosen))}
      </nav>
      <p class="visually-hidden" role="status" data-lamps-count></p>
      <h2 class="visually-hidden">The lamps</h2>
      <ul class="cards" data-lamps>${lamps.map((lamp) => card(lamp, chosen !== undefined && lamp.kind !== chosen))}</ul>`,
  }
}

export function lampPage(lamp: Lamp, added: boolean): Page {
  return {
    title: lamp.name,
    main: html`
      <p class="trail"><a href="/lamps">Lamps</a> / <a href="/lamps/${lamp.kind}">${lampKinds[lamp.kind]}</a></p>
      ${added && html`<p class="said" role="status">${lamp.name} is in your basket. <a href="/basket">Go to the basket</a></p>`}
      <article class="lamp">
        <img src="/art/${lamp.id}.svg" width="400" height="340" alt="${lamp.name}: ${lamp.summary}">
        <div>
          <h1>${lamp.name}</h1>
          <p class="lead">${lamp.summary}</p>
          <p class="price">${euros(lamp.price)}</p>
          <p>${lamp.story}</p>
          <form method="post" action="/basket">
            <input type="hidden" name="lamp" value="${lamp.id}">
            <button class="button" type="submit" name="add" value="1">Add to basket</button>
            <button class="quiet" type="button" data-ask="I have a question about ${lamp.name}: ">Ask about it</button>
          </form>
          <dl class="details">${lamp.facts.map(([label, value]) => html`<div><dt>${label}</dt><dd>${value}</dd></div>`)}</dl>
        </div>
      </article>`,
  }
}

function card(lamp: Lamp, hidden = false): Html {
  return html`<li class="card" data-kind="${lamp.kind}"${hidden && html` hidden`}>
    <img src="/art/${lamp.id}.svg" width="400" height="340" alt="" loading="lazy">
    <div><h3><a href="/lamp/${lamp.id}">${lamp.name}</a></h3><p class="price">${euros(lamp.price)}</p><p>${lamp.summary}</p></div>
  </li>`
}
