// Built from js/src by `make js`.
var X=`/* Views and questions, in roots of their own. A page sets the --transom-* variables, or styles the parts. */

:host {
  --ground: var(--transom-ground, light-dark(#f3f4f6, #121418));
  --card: var(--transom-card, light-dark(#ffffff, #1b1e24));
  --strip: var(--transom-strip, light-dark(#fafbfc, #20242b));
  --line: var(--transom-line, light-dark(#d9dde4, #333a45));
  --text: var(--transom-text, light-dark(#1a1e26, #e7eaf0));
  --quiet: var(--transom-quiet, light-dark(#5a6371, #9aa4b3));
  --accent: var(--transom-accent, light-dark(#2152d0, #86a8ff));
  --on-accent: var(--transom-on-accent, light-dark(#ffffff, #0c1424));
  --danger: var(--transom-danger, light-dark(#b3261e, #ff9b92));
  --busy: var(--transom-busy, light-dark(#a15c00, #f0b45a));
  --shadow: var(--transom-shadow, 0 10px 36px rgb(0 0 0 / 28%));
  --round: var(--transom-round, 12px);
  --layer: var(--transom-layer, 10);
  display: block;
  color: var(--text);
  font: var(--transom-font, 15px/1.45 system-ui, sans-serif);
}

:host([hidden]) { display: none !important; }
* { box-sizing: border-box; }

button {
  font: inherit;
  color: inherit;
  background: transparent;
  border: 1px solid transparent;
  border-radius: 8px;
  cursor: pointer;
}

button:disabled { cursor: default; opacity: 0.55; }
button:hover:not(:disabled) { border-color: var(--line); background: var(--card); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }

/* --- Views --- */

:host([data-state]) {
  flex: none;
  scroll-margin: 4rem 0 1rem;
  overflow: hidden;
  border: 1px solid var(--line);
  border-radius: var(--round);
  background: var(--card);
}

/* A View that wants no border of its own still has its boundary: who it is from stays in sight. */
:host([data-border="none"][data-mode="inline"]) { border-color: transparent; background: none; }
:host([data-border="none"][data-mode="inline"]) .caption {
  border: 1px solid var(--line);
  border-radius: var(--round);
}

.caption {
  position: relative;
  display: flex;
  align-items: center;
  gap: 0.6rem;
  min-height: 2.5rem;
  padding: 0.2rem 0.35rem 0.2rem 0.9rem;
  border-bottom: 1px solid var(--line);
  background: var(--strip);
  font-size: 0.875rem;
}

:host([data-state="loading"]) .caption::after {
  content: "";
  position: absolute;
  inset: auto 0 -1px 0;
  height: 2px;
  background: linear-gradient(90deg, transparent, var(--accent), transparent) no-repeat -40% 0 / 40% 100%;
  animation: loading 1.1s linear infinite;
}

@keyframes loading { to { background-position: 140% 0; } }

/* Whose it is comes first and is never cut off; what a View says of itself gets what room is left. */
.whose { flex: 0 1 auto; overflow-wrap: anywhere; }
.whose b { font-weight: 600; unicode-bidi: isolate; }

.caption .own {
  flex: 1 1 0;
  min-width: 0;
  overflow: hidden;
  text-overflow: ellipsis;
  white-space: nowrap;
  unicode-bidi: isolate;
  color: var(--quiet);
  font-size: 0.8125rem;
  font-style: italic;
}

.caption .busy { flex: none; color: var(--busy); font-variant-numeric: tabular-nums; }
.caption .starting { animation: appear 0.3s 2s both; }
:host(:not([data-state="loading"])) .starting { display: none; }
@keyframes appear { from { opacity: 0; } }

.caption .buttons { display: flex; flex: none; gap: 0.1rem; }
.caption button { display: grid; place-items: center; width: 2rem; height: 2rem; padding: 0; color: var(--quiet); }
.caption button:hover { color: var(--text); }
.caption button[aria-pressed="true"] { color: var(--accent); }
.caption svg { width: 1.05rem; fill: none; stroke: currentColor; stroke-width: 1.6; stroke-linecap: round; }

.trouble { display: flex; align-items: center; flex-wrap: wrap; gap: 0.5rem; padding: 0.6rem 0.9rem; }
.trouble p { flex: 1 1 14rem; margin: 0; color: var(--quiet); overflow-wrap: anywhere; unicode-bidi: plaintext; }
.trouble button { padding: 0.3rem 0.9rem; border-color: var(--line); }
:host([data-trouble]) .trouble { border-bottom: 1px solid var(--line); border-left: 4px solid var(--busy); }
:host([data-trouble]) iframe { opacity: 0.4; filter: grayscale(1); }
:host([data-state="failed"]) { border-left: 4px solid var(--danger); }

:host([data-state="closed"]) { display: flex; flex-wrap: wrap; align-items: center; border-style: dashed; background: none; }
:host([data-state="closed"]) .caption { flex: 1 1 20rem; min-width: 0; border: 0; background: none; color: var(--quiet); }
:host([data-state="closed"]) .trouble { flex: 0 1 auto; padding: 0.3rem 0.5rem 0.3rem 0.9rem; font-size: 0.8125rem; }
:host([data-state="closed"]) .trouble p { flex: 0 1 auto; }
:host([data-held]) .trouble button { pointer-events: none; }
.about { font: 0.8125rem ui-monospace, monospace; unicode-bidi: isolate; }

.pin { flex: none; display: grid; place-items: center; color: var(--accent); }
[hidden] { display: none !important; }

.grants { padding: 0.5rem 0.9rem; border-bottom: 1px solid var(--line); background: var(--strip); font-size: 0.875rem; }
.grants p { margin: 0; color: var(--quiet); }
.grants ul { margin: 0; padding: 0; max-height: 12rem; overflow-y: auto; list-style: none; }
.grants li { display: flex; align-items: center; gap: 0.6rem; padding: 0.2rem 0; overflow-wrap: anywhere; }
.grants li span { flex: 1; }
.grants button { flex: none; padding: 0.2rem 0.8rem; border-color: var(--line); }
:host([data-state="noted"]) { border-style: dashed; font-size: 0.875rem; }

iframe { display: block; width: 100%; height: 360px; border: 0; background: transparent; }
iframe:focus-visible { outline-offset: -2px; }
:host([data-held]) iframe { pointer-events: none; }
:host([data-lost]) iframe { opacity: 0.4; filter: grayscale(1); transition: opacity 0.2s; }
:host([data-question]) { outline: 3px solid var(--accent); outline-offset: 1px; }
:host([data-question][data-mode="fullscreen"]) { outline-offset: -3px; }

:host([data-mode="fullscreen"]) {
  position: fixed;
  inset: 0;
  z-index: var(--layer);
  display: flex;
  flex-direction: column;
  margin: 0;
  border: 0;
  border-radius: 0;
}

:host([data-mode="fullscreen"]) iframe { flex: 1; height: auto !important; }

:host([data-mode="pip"]) {
  position: fixed;
  right: 16px;
  bottom: 16px;
  z-index: calc(var(--layer) - 1);
  width: min(380px, calc(100vw - 32px));
  margin: 0;
  box-shadow: var(--shadow);
}

:host([data-mode="pip"]) iframe { height: min(240px, 50vh) !important; }
:host([data-mode="pip"]) .caption { flex-wrap: wrap; row-gap: 0; }
:host([data-mode="pip"]) .whose { flex: 1 1 0; }
:host([data-mode="pip"]) .own { flex-basis: 100%; order: 1; }

/* --- questions --- */

.questions {
  position: fixed;
  inset: auto 0 0 0;
  z-index: calc(var(--layer) + 10);
  display: flex;
  flex-direction: column;
  align-items: center;
  gap: 0.75rem;
  max-height: 100vh;
  padding: 1rem;
  overflow-y: auto;
  pointer-events: none;
}

.questions:empty { display: none; }

.question {
  pointer-events: auto;
  flex: none;
  width: min(100%, 620px);
  padding: 1rem 1.1rem;
  border: 1px solid var(--accent);
  border-radius: var(--round);
  background: var(--card);
  box-shadow: var(--shadow);
}

.question:focus { outline: none; }
.question .asker { display: flex; gap: 0.6rem; font-size: 0.875rem; }
.question .more { flex: none; width: 5.5rem; margin-left: auto; color: var(--quiet); text-align: right; }
.question h2 { margin: 0.35rem 0 0.6rem; font-size: 1.0625rem; overflow-wrap: anywhere; }
.question p { margin: 0 0 0.35rem; color: var(--quiet); font-size: 0.875rem; overflow-wrap: anywhere; }

.question code,
.grants code {
  padding: 0.1em 0.35em;
  border-radius: 5px;
  background: var(--ground);
  font: 0.9375em ui-monospace, monospace;
  unicode-bidi: isolate;
}

.question pre,
.question blockquote {
  margin: 0 0 0.8rem;
  overflow: auto;
  padding: 0.6rem 0.7rem;
  border-radius: 8px;
  background: var(--ground);
  white-space: pre-wrap;
  overflow-wrap: anywhere;
  unicode-bidi: plaintext;
}

.question pre { max-height: min(11rem, 28vh); font: 0.8125rem/1.5 ui-monospace, monospace; }

.question blockquote {
  max-height: min(6rem, 16vh);
  border-left: 3px solid var(--line);
  font-size: 0.875rem;
  font-style: italic;
}

/* A press on a button that cannot be pressed yet is a press on the card: it begins nothing. */
.question button[aria-disabled="true"] { opacity: 0.55; pointer-events: none; }
.question .buttons { display: flex; margin-top: 0.8rem; flex-wrap: wrap; justify-content: flex-end; gap: 0.5rem; }
.question .buttons button { border-color: var(--line); padding: 0.4rem 1rem; white-space: nowrap; }
.question .buttons .main { border-color: var(--accent); background: var(--accent); color: var(--on-accent); }
.question .buttons .main:hover:not(:disabled) { filter: brightness(1.08); }

@media (max-width: 560px) {
  .caption { flex-wrap: wrap; row-gap: 0; }
  .caption .whose { flex: 1 1 0; }
  .caption .own { flex-basis: 100%; order: 1; }
  :host([data-state="closed"]) .trouble { flex: 1 1 100%; padding-top: 0; }
  :host([data-state="closed"]) .trouble p { flex: 1 1 100%; }
  .question .buttons button { flex: 1; }
}

@media (prefers-reduced-motion: reduce) {
  :host([data-state="loading"]) .caption::after { animation: none; background-size: 100% 100%; }
}
`;var Z=new CSSStyleSheet;Z.replaceSync(X);function A(i){let e=i.attachShadow({mode:"open"});return e.adoptedStyleSheets=[Z],e}function r(i,{text:e,...t}={},...n){let o=document.createElement(i);for(let[s,a]of Object.entries(t))o.setAttribute(s,a);return e!==void 0&&(o.textContent=e),o.append(...n),o}var Re={fullscreen:"M3 8V3h5M12 3h5v5M17 12v5h-5M8 17H3v-5",pip:"M3 4h14v12H3zM11 10h4v4h-4z",close:"M5 5l10 10M15 5L5 15",pin:"M7 3h6M8 3v5l-3 4h10l-3-4V3M10 12v5",key:"M11 9l6-6M14 6l2.5 2.5M12 11.5a3.8 3.8 0 1 1-3.5-3.5 3.8 3.8 0 0 1 3.5 3.5z"};function H(i){let e=document.createElementNS("http://www.w3.org/2000/svg","svg");e.setAttribute("viewBox","0 0 20 20"),e.setAttribute("aria-hidden","true");let t=document.createElementNS("http://www.w3.org/2000/svg","path");return t.setAttribute("d",Re[i]),e.append(t),e}var ee=[100,200,500,1e3,2e3],Ce=900,Ie=900,$e=8e3,He=500,Pe=96*1024*1024,te=4001,qe=[4401,4403],_e=4410,w="-";function ne(i){let e=new URL("socket",i);return e.protocol=e.protocol.replace("http","ws"),e.href}var v=class{#t;#i;#o;#e=null;#n=!1;#r=null;#a=0;#s=0;#d=0;#l=[];#c=0;#h=new Map;#p;#u;#m=0;#w=!1;#g;#f=!1;constructor({url:e,token:t,on:n}){this.#t=e,this.#i=t,this.#o=n,this.#y()}send(e,t){if(this.#w)return;this.#a+=1;let n=`${this.#a} ${e}
${t}`;this.#l.push([this.#a,n,e]);let o=(this.#h.get(e)??0)+n.length;this.#h.set(e,o),this.#v?.send(n),o>Pe&&e!==w&&(this.#E(e),this.#o.flood(e))}get#v(){let e=this.#n?this.#e:null;return e?.readyState===WebSocket.OPEN?e:void 0}#E(e){for(let t of this.#l)t[2]===e&&(t[1]=`${t[0]} ${w}
{}`);this.#h.delete(e)}leave(){this.#e?.close(te,"leaving")}drop(){this.#e?.close()}giveUp(e){if(this.#w)return;clearTimeout(this.#u),this.#u=void 0;let t=this.#e;this.#e=null,t?.close(te,"leaving"),this.#M(e)}hurry(){this.#u?(clearTimeout(this.#u),this.#y()):this.#f||this.#k()}#y(){this.#u=void 0;let e=new WebSocket(this.#t);this.#e=e,this.#n=!1,e.onopen=()=>{let t={token:this.#i,page:this.#r,received:this.#s};e.send(JSON.stringify(t))},e.onmessage=({data:t})=>{this.#e===e&&(this.#S(),this.#n?this.#O(t):this.#L(e,JSON.parse(t)))},e.onclose=({code:t,reason:n})=>{this.#e===e&&(this.#e=null,clearTimeout(this.#g),qe.includes(t)?this.#M("unknown"):t===_e?this.#M(n):this.#w||this.#A())}}#S(){this.#f&&this.#o.state("connected"),this.#f=!1,this.#b(Ce,()=>{this.#k()})}#k(){!this.#e||!this.#n||(this.#x(),this.#b(Ie,()=>{this.#V()}))}#V(){this.#f=!0,this.#o.state("reconnecting"),this.#b($e,()=>{let e=this.#e;this.#e=null,e?.close(),this.#A()})}#b(e,t){let n=performance.now()+e;clearTimeout(this.#g),this.#g=setTimeout(()=>{document.hidden?this.#b(e,t):performance.now()>n+He?this.#k():t()},e)}#A(){this.#f=!1,this.#o.state("reconnecting");let e=ee[Math.min(this.#m,ee.length-1)];this.#m+=1,this.#u=setTimeout(()=>{this.#y()},e)}#L(e,{page:t,received:n,resumed:o}){this.#r!==null&&!o&&(this.#a=this.#s=this.#d=0,this.#l=[],this.#c=0,this.#h.clear(),this.#o.fresh()),this.#m=0,this.#r=t,this.#n=!0,this.#T(n);for(let[,s]of this.#l.slice(this.#c))e.send(s);this.#o.state("connected")}#O(e){let t=e.indexOf(`
`);if(t<0){this.#T(Number(e));return}let n=e.indexOf(" ");Number(e.slice(0,n))===this.#s+1&&(this.#s+=1,this.#N(),this.#o.frame(e.slice(n+1,t),e.slice(t+1)))}#T(e){for(;;){let t=this.#l[this.#c];if(!t||t[0]>e)break;let[,n,o]=t;this.#c+=1;let s=(this.#h.get(o)??0)-n.length;s>0?this.#h.set(o,s):this.#h.delete(o)}this.#c*2>=this.#l.length&&(this.#l.splice(0,this.#c),this.#c=0)}#N(){this.#s-this.#d>=32||document.hidden?this.#x():this.#p??=setTimeout(()=>{this.#x()},50)}#x(){clearTimeout(this.#p),this.#p=void 0,this.#d=this.#s,this.#v?.send(String(this.#s))}#M(e){this.#w=!0,clearTimeout(this.#g),clearTimeout(this.#p),this.#o.state("over",e)}};var je=1e4,T=class{number;link;state="connecting";#t;constructor(e,{url:t,token:n},o){this.number=e,this.#t=o,this.link=new v({url:t,token:n,on:this.#n()})}notify(e){this.link.send(w,JSON.stringify(e))}send(e,t){this.link.send(e,t)}#i(e){let{views:t,questions:n}=this.#t,o=e;switch(o.do){case"mount":t.mount(this,o);break;case"unmount":t.drop(this,o.view);break;case"gone":t.showGone(this,o);break;case"trouble":t.get(this,o.view)?.setTrouble(o);break;case"marks":t.get(this,o.view)?.setMarks(o);break;case"named":t.get(this,o.view)?.setName(o);break;case"mode":t.get(this,o.view)?.setMode(o.mode);break;case"clear":t.clearStorage(o.origins);break;case"ask":n.ask(this,o,s=>{this.#o(o,s)});break;case"unask":n.withdraw(this,o.id);break;case"download":ze(o);break;default:this.#t.onMessage(e)}}#o(e,t){this.notify({do:"answer",id:e.id,value:t}),e.kind==="link"&&t&&window.open(e.url,"_blank","noopener,noreferrer")}#e(){this.#t.views.clear(this),this.#t.questions.clear(this)}#n(){let{views:e,onState:t,onFresh:n}=this.#t;return{frame:(o,s)=>{let a=JSON.parse(s);o===w?this.#i(a):e.get(this,o)?.post(a)},state:(o,s)=>{this.state=o,o==="over"?this.#e():e.setReached(this,o==="connected"),t(this,s)},fresh:()=>{this.#e(),n?.()},flood:o=>{e.drop(this,o),this.notify({do:"broken",view:o,reason:"it sends more than the host takes"})}}}};function ze({name:i,mime:e,data:t}){let n=Uint8Array.from(atob(t),s=>s.charCodeAt(0)),o=URL.createObjectURL(new Blob([n],{type:e}));r("a",{href:o,download:i}).click(),setTimeout(()=>{URL.revokeObjectURL(o)},je)}var oe=i=>({do:"surroundings",value:{locale:navigator.language,timeZone:Intl.DateTimeFormat().resolvedOptions().timeZone,userAgent:"transom",platform:"web",deviceCapabilities:{touch:navigator.maxTouchPoints>0,hover:matchMedia("(hover: hover)").matches},...i}});var P="transom-token",q="transom-joined";var b=new BroadcastChannel(`transom ${location.pathname}`);function ie(){let i=new URLSearchParams(location.hash.slice(1)).get("token");return i&&(sessionStorage.setItem(P,i),history.replaceState(null,"",location.pathname)),i??sessionStorage.getItem(P)??""}function se(i){sessionStorage.setItem(q,JSON.stringify(i))}function re(){try{return JSON.parse(sessionStorage.getItem(q)??"[]")}catch{return[]}}function ae(i){b.addEventListener("message",({data:e})=>{if(e.do!=="ask"||!i())return;let t=Object.fromEntries([P,q].map(n=>[n,sessionStorage.getItem(n)]));b.postMessage({do:"kept",kept:t})})}function de(){return new Promise(i=>{let e=setTimeout(()=>{i(null)},1e3);b.addEventListener("message",function t({data:n}){n.do==="kept"&&(clearTimeout(e),b.removeEventListener("message",t),i(()=>{for(let[o,s]of Object.entries(n.kept))sessionStorage.setItem(o,s??"");location.reload()}))}),b.postMessage({do:"ask"})})}var We=20,De=3e4,Fe=/^http:\/\/127\.0\.0\.1:\d{1,5}$/,E=class{#t=new Map;#i;#o;#e;#n=0;constructor(e){this.#i=e,this.#o={views:e.views,questions:e.questions,onState:(t,n)=>{this.#s(t,n)},onMessage:t=>{switch(t.do){case"join":this.join(t.origin,t.token);break;case"notice":e.onNotice(t.text);break}}}}start(e,t){let n=re(),o=this.#r(e,t);this.#e=o;for(let s of n)s.url!==e&&this.join(s.origin,s.token);return o}join(e,t){if(!Fe.test(e)||typeof t!="string")return;let n=`${e.replace("http","ws")}/socket`,o=this.#t.get(n);!o&&this.#t.size>=We||(o?.agent.link.giveUp("it joined again"),this.#r(n,t,{url:n,token:t,origin:e}),this.#a())}#r(e,t,n){let o=new T(this.#n,{url:e,token:t},this.#o);return this.#n+=1,this.#t.set(e,{agent:o,url:e,joined:n}),o}#a(){let e=this.#e?.state==="connected",t=[...this.#t.values()].flatMap(n=>n.joined??[]);se(e?t:[])}*[Symbol.iterator](){for(let{agent:e}of this.#t.values())yield e}#s(e,t){let n=[...this.#t.values()].find(a=>a.agent===e);n&&clearTimeout(n.losing),n&&e.state==="over"&&this.#t.delete(n.url),this.#a(),n&&e.state==="reconnecting"&&this.#d(n),e.state==="connected"&&this.#i.onConnected(e);let o=[...this].map(({state:a})=>a),{onState:s}=this.#i;o.length===0?s("over",!0,t):o.includes("reconnecting")?s("reconnecting",!o.includes("connected")):o.includes("connected")&&s("connected",!1)}#d(e){e.losing=setTimeout(()=>{![...this].some(({state:n})=>n==="connected")?this.#d(e):e.agent.link.giveUp("it is gone")},De)}};function S({view:i,shown:e=i,server:t,client:n}){let o=[r("b",{text:e})," from ",r("b",{text:t})];return n&&o.push(" for ",r("b",{text:n})),r("span",{class:"whose",part:"whose"},...o)}var _=(...i)=>r("div",{class:"caption",part:"caption"},...i),j=i=>i.replace(/\.?$/,".");function V(i,e,t,n="alert"){let o=Object.entries(t).map(([a,d])=>{let c={type:"button",text:a,"aria-label":`${a}: ${i}`},h=r("button",c);return h.addEventListener("click",()=>{for(let l of o)l.disabled=!0;d()}),h});return r("div",{class:"trouble",part:"note",role:n},r("p",{text:e}),...o)}function z(i,e,t){let n=e.map(d=>{let c=d.by==="view"?"The View calls its server's ":"The model calls ",h=`Ask again before ${d.shown}: ${i}`,l=r("button",{type:"button",text:"Ask again","aria-label":h});l.addEventListener("click",()=>{l.disabled=!0,t(d)});let u=r("span",{},c,r("code",{text:d.shown}));return r("li",{},u,l)}),s={class:"grants",part:"grants",role:"region","aria-label":`Always allowed: ${i}`},a=r("p",{text:"You are not asked before"});return r("div",s,a,r("ul",{},...n))}var le=500,Ge=1500,Ke=100,ce=2e4,Be=i=>i.length<=ce?i:`${i.slice(0,ce)}
… (${i.length} characters)`;function Je(i){let e=["bytes","KB","MB"],t=0,n=i;for(;n>=1024&&t<2;t+=1)n/=1024;return`${t?n.toFixed(1):n} ${e[t]}`}var g=i=>r("p",{text:i}),he=i=>r("blockquote",{text:i}),D=i=>r("pre",{text:Be(i),tabindex:"0"}),W=["Refuse",!1],Ue=()=>({title:["That question was withdrawn"],body:[g("Whoever asked does not need an answer any more.")],answers:[["Next question",!1]]});function Qe(i){switch(i.kind){case"approve":return Ye(i);case"link":{let{href:e,host:t}=Xe(i.url);return{title:[i.url.startsWith("mailto:")?"Write this mail?":`Open ${t}?`],body:[g("The View wants to open:"),D(e)],answers:[["Open",!0],W]}}case"download":{let{files:e}=i,t=e.map(n=>`${n.name}  (${Je(n.bytes)})`);return{title:[e.length===1?"Save this file?":`Save ${e.length} files?`],body:[g("The View wants to save:"),D(t.join(`
`))],answers:[["Save",!0],W]}}case"pin":{let e="It would not be closed to make room for others, until you close it.",{reason:t}=i,n=t?[g("The View says why:"),he(t)]:[];return{title:["Keep this View open?"],body:[g(e),...n],answers:[["Keep open",!0],W]}}default:return}}function Ye(i){let{tool:e,by:t,opens:n,description:o,arguments:s,changed:a,granted:d=[]}=i,c=r("code",{text:e}),h=t==="view"?"Let the View call its server's ":"Let the model call ",l=[];return o&&(l.push(g(`The ${n?"server":"View"} says what it does:`)),l.push(he(o))),Object.keys(s).length===0?l.push(g("It is called without arguments.")):l.push(g("It is called with:"),D(JSON.stringify(s,null,2))),a&&l.push(g("You always allowed this tool. It has changed since, so you are asked again.")),d.length&&l.push(g(`You always allow this View: ${d.join(", ")}.`)),{title:n?["Let ",c," open a View?"]:[h,c,"?"],body:l,answers:[["Allow","allow"],["Always allow","always"],["Refuse","deny"]]}}function Xe(i){try{return new URL(i)}catch{return{href:i,host:"this link"}}}function Ze(){let i=document.activeElement;for(;i?.shadowRoot?.activeElement;)i=i.shadowRoot.activeElement;return i}var L=class{#t;#i;#o=r("div",{class:"questions","aria-live":"polite"});#e=[];#n;#r=le;#a=0;#s;#d=!1;constructor(e,t){this.#t=e,this.#i=t,A(e).append(this.#o);let n=()=>{this.#d||this.#f()};addEventListener("pointerdown",n,!0),addEventListener("keydown",({key:o})=>{(o==="Enter"||o===" ")&&n()},!0),addEventListener("resize",()=>{this.#f()})}ask(e,t,n){let o=Qe(t);o&&(this.#e.push({asker:e,question:t,card:o,onAnswer:n}),this.#n?this.#g():this.#h())}withdraw(e,t){this.#l(n=>n.asker===e&&n.question.id===t)}clear(e){this.#l(t=>t.asker===e)}#l(e){this.#e=this.#e.filter(n=>!e(n));let t=this.#n?.entry&&!e(this.#n.entry);!this.#n||t?this.#g():this.#e.length===0?this.#h():this.#n.entry?this.#m(Ue()):this.#g()}#c(e){let t=this.#n?.entry;this.#h(),t?.onAnswer(e)}#h(){let e=this.#e.shift();e?this.#m(e.card,e):this.#p()}#p(){this.#u(),this.#i.onShown(),this.#g()}#u(){clearInterval(this.#s),this.#n?.section.remove(),this.#n=void 0}#m(e,t){let n=Ze();this.#u();let o=this.#w(e,t);this.#n=o;let s=this.#i.onShown(t?.asker,t?.question);this.#r=n instanceof HTMLIFrameElement?Ge:le,this.#s=setInterval(()=>{this.#v()},Ke),this.#o.append(o.section),(t?.question.kind!=="approve"&&n===s||!n||n===document.body)&&o.section.focus(),this.#f(),this.#g()}#w({title:e,body:t,answers:n},o){let s=r("h2",{},...e),a=r("span",{class:"more"}),d=n.map(([u,U],x)=>{let m=r("button",{type:"button",text:u,class:x?"":"main"});return m.addEventListener("click",()=>{this.#d&&this.#c(U)}),m}),c=o?.question.server?S(o.question):"",h=s.textContent,l=r("section",{class:"question",part:"question",role:"alertdialog","aria-label":h,tabindex:"-1"},r("div",{class:"asker"},c,a),s,...t,r("div",{class:"buttons"},...d));return l.addEventListener("keydown",u=>{u.key==="Escape"&&(u.stopPropagation(),this.#c(n.at(-1)[1]))}),{entry:o,section:l,buttons:d,more:a}}#g(){let e=this.#e.length;this.#n&&(this.#n.more.textContent=e?`and ${e} more`:""),this.#t.toggleAttribute("data-asking",!!this.#n),this.#i.onCount?.(e+(this.#n?.entry?1:0))}#f(){this.#a=performance.now(),this.#v()}#v(){let e=performance.now();(document.hidden||!document.hasFocus())&&(this.#a=e),this.#d=e-this.#a>=this.#r;for(let t of this.#n?.buttons??[])t.ariaDisabled=String(!this.#d)}};var O="ui/notifications/sandbox-",ue=`${O}proxy-ready`,ge=`${O}resource-ready`,pe=`${O}view-gone`,F=i=>i?.method;function fe(i){let e=F(i);return typeof e=="string"&&e.startsWith(O)}var G="/transom-view",et=["inline","fullscreen","pip"],tt="allow-scripts allow-same-origin allow-forms",N=16*1024*1024,me=6e3,nt=10,ot=100,it=12e3,st=1e3,rt=500,at=8;function K(i){let{paddingLeft:e,paddingRight:t}=getComputedStyle(i),n=i.clientWidth-parseFloat(e)-parseFloat(t)-2;return{width:Math.max(0,Math.floor(n)),maxHeight:me}}var dt=i=>i.length*3>N&&(i.length>N||new Blob([i]).size>N);function lt(i){try{return JSON.stringify(i)}catch{return}}var y=class extends HTMLElement{isPlaced=!1;key="";origin="";#t="";#i=A(this);#o;#e;#n;#r;get agent(){return this.#o.agent}get frame(){return this.#e?.frame}get window(){return this.frame?.contentWindow??null}get mode(){return this.dataset.mode}start(e,t){let{view:n,origin:o,number:s,allow:a,border:d}=e,c=this.#a(e,t,"loading");this.origin=o,this.toggleAttribute("data-trouble",!1),d||(this.dataset.border="none");let h=r("span",{class:"starting",text:"starting…"}),l=r("span",{class:"own"},h),x=r("span",{class:"pin",role:"img",title:"It stays open until you close it","aria-label":"Pinned"},H("pin")),m=r("span",{class:"busy",part:"busy",role:"timer",hidden:""}),Q={key:this.#l("key","What is always allowed",()=>{this.#c()}),fullscreen:this.#l("fullscreen","Full screen",()=>{this.toggle("fullscreen")}),pip:this.#l("pip","Picture in the corner",()=>{this.toggle("pip")}),close:this.#l("close","Close",()=>{this.close()})},Y=`${o}${G}?${s}`,Ve={sandbox:tt,title:`View ${this.#t}`,src:Y,part:"frame"},p=r("iframe",Ve);a&&p.setAttribute("allow",a);let M={mount:e,frame:p,own:l,pin:x,busy:m,buttons:Q,grants:z(this.#t,[],()=>{}),loads:0,reports:0,height:0,isFilled:!1};p.addEventListener("load",()=>{M.loads>0||(p.style.visibility="hidden",setTimeout(()=>{this.#e===M&&M.loads===0&&(p.src=Y)},st))}),this.#e=M;let Le=r("span",{class:"buttons"},...Object.values(Q));this.#i.append(_(c,x,m,l,Le),p),this.setMarks({pinned:!1,grants:[]}),this.#n=setTimeout(()=>{let Oe=`${o} did not load in the browser`;this.agent.notify({do:"broken",view:n,reason:Oe,value:!0})},it)}#a(e,t,n){let{view:o,shown:s=o}=e,{number:a}=t.agent;this.#o=t,this.key=o,this.#t=s,this.id||=`view-${a?`${a}:`:""}${o}`,this.dataset.mode="inline",this.#s(n),this.setAttribute("role","region");let d=S(e);return this.setAttribute("aria-label",`View ${d.textContent}`),d}#s(e){clearTimeout(this.#n),clearInterval(this.#r),this.#e=void 0,this.hidden=!1,this.dataset.state=e,this.#i.replaceChildren()}showGone(e,t){let{view:n,failed:o,reason:s,about:a}=e,{agent:d}=t,c=this.#a(e,t,o?"failed":"closed");a&&c.append(" ",r("span",{class:"about",text:a}));let h=j(o?`It could not be shown: ${s}`:s),l={[o?"Try again":"Reopen"]:()=>{d.notify({do:"retry",view:n})},[o?"Close":"Dismiss"]:()=>{d.notify({do:"closed",view:n})}},u=V(this.#t,h,l,o?"alert":"group");this.#i.append(_(c),u),o&&this.#d("failed",s)}#d(e,t){let n={view:this.key,kind:e,message:t};this.dispatchEvent(new CustomEvent("problem",{bubbles:!0,composed:!0,detail:n}))}note(e,t={}){this.#s("noted"),this.toggleAttribute("data-held",!1),this.#i.append(V(this.getAttribute("view")??this.#t,e,t))}#l(e,t,n){let o={type:"button",title:t,"aria-label":`${t}: ${this.#t}`},s=r("button",o,H(e));return s.addEventListener("click",n),s}disconnectedCallback(){clearTimeout(this.#n),clearInterval(this.#r)}setName({name:e,version:t}){if(!this.#e)return;let{own:n,mount:o}=this.#e,s=`calls itself “${e}” ${t}`.trimEnd();n.title=n.textContent=`${e?`${s} · `:""}${o.uri}`}setMarks({pinned:e,grants:t}){let n=this.#e;if(!n)return;let{pin:o,buttons:s}=n;o.hidden=!e,s.key.hidden=t.length===0;let a=n.grants.isConnected&&t.length>0;n.grants.remove(),n.grants=z(this.#t,t,({tool:d,by:c})=>{this.agent.notify({do:"withdraw",view:this.key,tool:d,by:c})}),a?this.#c():s.key.setAttribute("aria-expanded","false")}#c(){let{grants:e,buttons:t}=this.#e,n=!e.isConnected;n?this.#i.querySelector(".caption").after(e):e.remove(),t.key.setAttribute("aria-expanded",String(n)),this.#o.hold(this)}toggle(e){this.setMode(this.mode===e?"inline":e)}setMode(e){if(et.includes(e)){e!=="inline"&&this.#o.makeRoom(this,e),this.mode!==e&&this.#o.hold(this),this.dataset.mode=e;for(let t of["fullscreen","pip"])this.#e?.buttons[t].setAttribute("aria-pressed",String(e===t));this.#o.rearrange(),this.sendMode()}}sendMode(){if(!this.frame)return;let{clientWidth:e,clientHeight:t}=this.frame,{mode:n,key:o}=this,s=n==="inline"?K(this.#o.place):{width:e,height:t};this.agent.notify({do:"mode",view:o,mode:n,size:s})}close(){this.hidden=!0,this.#o.rearrange(),this.agent.notify({do:"closed",view:this.key})}#h(e,t){let{height:n}=Object(t),o=Math.min(Math.ceil(Number(n)),me);o>0&&(e.frame.style.height=`${o}px`,!(Math.abs(o-e.height)<at)&&(e.height=o,this.#o.hold(this)))}post(e){this.window?.postMessage(e,this.origin),this.look()}look(){let e=this.#e,t=e?.frame.contentWindow;t&&(t.length>0?e.isFilled=!0:e.isFilled&&(e.isFilled=!1,setTimeout(()=>{this.#e!==e||t.length>0||this.#u(e,"vanished","its page crashed or was unloaded")},rt)))}receive(e){let t=this.#e;if(!t)return;let n=F(e);if(fe(e)){n===ue?this.#w(t):n===pe&&this.#u(t,"vanished","its page shows something else now");return}n==="ui/notifications/size-changed"?this.#h(t,e.params):n==="ui/notifications/initialized"&&(this.dataset.state="live");let o=lt(e);o===void 0?this.#p(t,e,"is not JSON"):dt(o)?this.#p(t,e,`is larger than ${N} bytes`):this.agent.send(this.key,o)}#p(e,t,n){let{id:o,method:s}=Object(t);if(this.#u(e,"refused",`A message ${n}`),s===void 0&&(typeof o=="number"||typeof o=="string")){let a={code:-32603,message:`The View's answer ${n}: it was not passed on`};this.agent.send(this.key,JSON.stringify({jsonrpc:"2.0",id:o,error:a}))}}#u(e,t,n){e.reports+=1,!(e.reports>ot)&&this.agent.notify({do:t,view:this.key,reason:n})}setTrouble({reason:e,busyFor:t}){let n=this.#e;if(!n||(this.#m(n,t),n.trouble?.remove(),this.toggleAttribute("data-trouble",!!e),!e))return;let{key:o}=this;n.trouble=V(this.#t,`It does not respond: ${j(e)}`,{Reload:()=>{this.agent.notify({do:"reload",view:o})},Close:()=>{this.close()}}),n.frame.before(n.trouble),this.#o.hold(this),this.#d("unresponsive",e)}#m({busy:e},t){if(clearInterval(this.#r),e.hidden=t===null,t===null)return;let n=performance.now()-t*1e3,o=()=>{e.textContent=`busy for ${Math.round((performance.now()-n)/1e3)} s`};o(),this.#r=setInterval(o,1e3)}#w(e){let{frame:t,mount:n}=e;if(clearTimeout(this.#n),t.style.visibility="",e.loads+=1,e.loads>nt){this.agent.notify({do:"broken",view:this.key,reason:"it keeps reloading itself"});return}let o={html:n.html,allow:n.allow};this.post({jsonrpc:"2.0",method:ge,params:o})}};var ct=1e3,ht=500,B=(i,e)=>`${i.number} ${e}`,R=class{#t=new Map;#i=new Map;#o;#e;constructor(e){this.#o=e,window.addEventListener("message",({source:t,origin:n,data:o})=>{let s=this.#i.get(t);s?.origin===n&&s.receive(o)}),setInterval(()=>{for(let t of this.#t.values())t.look()},ct)}get(e,t){return this.#t.get(B(e,t))}mount(e,t){let n=this.#n(e,t.view);n.start(t,this.#a(e,n)),this.#i.set(n.window,n),this.#r(n),n.isPlaced&&n.sendMode()}showGone(e,t){let n=this.#n(e,t.view);n.showGone(t,this.#a(e,n)),t.failed?this.#r(n):this.#s()}clearStorage(e){for(let t of e){let n={src:`${t}${G}`,sandbox:"",hidden:""},o=r("iframe",n);o.addEventListener("load",()=>{o.remove()}),document.body.append(o)}}#n(e,t){this.drop(e,t);let n=this.#o(t);return this.#t.set(B(e,t),n),n}#r(e){this.#s(),e.isPlaced||e.scrollIntoView({block:"nearest"})}#a(e,t){return{agent:e,place:t.isPlaced?t:t.parentElement,makeRoom:this.#l,rearrange:this.#c,hold:this.#s}}drop(e,t){let n=this.get(e,t);n&&(this.#t.delete(B(e,t)),this.#i.delete(n.window),n.isPlaced?n.note(""):n.remove(),this.#s(),this.#c())}clear(e){for(let t of this.#d(e))this.drop(e,t.key)}pointAt(e,t){let n=e&&t!==void 0?this.get(e,t):void 0;for(let o of this.#t.values())o.toggleAttribute("data-question",o===n);if(n?.frame)return this.#s(),n.scrollIntoView({block:"nearest"}),n.frame}#s=e=>{let t=n=>{for(let o of this.#t.values())o.toggleAttribute("data-held",n&&o!==e)};t(!0),clearTimeout(this.#e),this.#e=setTimeout(t,ht,!1)};setReached(e,t){for(let n of this.#d(e))n.toggleAttribute("data-lost",!t)}#d(e){return[...this.#t.values()].filter(t=>t.agent===e)}onResized(){for(let e of this.#t.values())(e.isPlaced||e.mode!=="inline")&&e.sendMode()}get fullscreen(){return[...this.#t.values()].find(e=>e.mode==="fullscreen"&&!e.hidden)}#l=(e,t)=>{for(let n of this.#t.values())n!==e&&n.mode===t&&n.setMode("inline")};#c=()=>{let e=this.fullscreen;document.body.toggleAttribute("data-covered",e!==void 0);for(let t of this.#t.values())t.inert=e!==void 0&&t!==e}};var we=3e4,ut=150,f=i=>document.getElementById(i),ye=f("views"),J=f("state"),C=f("banner"),ve=f("notice"),k=f("empty"),gt=k.textContent,ke=matchMedia("(prefers-color-scheme: dark)");customElements.define("transom-view",y);var I=new R(()=>ye.appendChild(new y)),pt=new L(f("questions"),{onShown:(i,e)=>I.pointAt(i,e?.view),onCount(i){document.title=i?`(${i}) Transom`:"Transom"}}),$=new E({views:I,questions:pt,onConnected(i){i.notify(Ae())},onNotice(i){ve.textContent=i,ve.hidden=!i},onState(i,e,t){i!=="reconnecting"?mt():J.dataset.state!==i&&ft(e?"the agent":"an agent"),J.dataset.state=i,J.textContent=i==="connected"?"Connected":"Not connected",i==="over"?wt(t):k.textContent=gt}}),xe;function ft(i){C.textContent=`No connection to ${i}. Trying again…`,C.hidden=!1,xe=setTimeout(()=>{C.textContent=`No connection to ${i} for ${we/1e3} seconds. If it has ended, you can close this page. If it comes back, its Views do, too.`},we)}function mt(){clearTimeout(xe),C.hidden=!0}async function wt(i=""){if(i==="the agent has ended")k.textContent="The agent has ended. You can close this page.";else if(i==="unknown")await vt();else{let e=i?`${i[0].toUpperCase()}${i.slice(1)}`:"The agent has hung up";Me(`${e}.`,()=>{location.reload()})}}async function vt(){let i=await de();i?Me("The Views are shown in another tab of this browser.",i):k.textContent="The agent does not know this page. Open the address that it gives you now."}function Me(i,e){let t=r("button",{type:"button",text:"Show them here"});t.addEventListener("click",e,{once:!0}),k.replaceChildren(i," ",t)}var Ae=()=>oe({theme:ke.matches?"dark":"light",containerDimensions:K(ye)});function Te(){for(let i of $)i.notify(Ae())}function Ee(){for(let i of $)i.link.hurry()}var be;addEventListener("resize",()=>{clearTimeout(be),be=setTimeout(()=>{Te(),I.onResized()},ut)});ke.addEventListener("change",Te);addEventListener("keydown",({key:i})=>{i==="Escape"&&I.fullscreen?.setMode("inline")});addEventListener("pagehide",()=>{for(let i of $)i.link.leave()});addEventListener("online",Ee);document.addEventListener("visibilitychange",Ee);var Se=$.start(ne(location.href),ie());ae(()=>Se.state==="connected");var{link:Yt}=Se;export{v as Link,Yt as link};
