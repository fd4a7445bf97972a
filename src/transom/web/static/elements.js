// Built from js/src by `make js`.
var G=`/* Views and questions, in roots of their own. A page sets the --transom-* variables, or styles the parts. */

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
`;var j=new CSSStyleSheet;j.replaceSync(G);function y(s){let e=s.attachShadow({mode:"open"});return e.adoptedStyleSheets=[j],e}function r(s,{text:e,...t}={},...n){let i=document.createElement(s);for(let[o,a]of Object.entries(t))i.setAttribute(o,a);return e!==void 0&&(i.textContent=e),i.append(...n),i}var de={fullscreen:"M3 8V3h5M12 3h5v5M17 12v5h-5M8 17H3v-5",pip:"M3 4h14v12H3zM11 10h4v4h-4z",close:"M5 5l10 10M15 5L5 15",pin:"M7 3h6M8 3v5l-3 4h10l-3-4V3M10 12v5",key:"M11 9l6-6M14 6l2.5 2.5M12 11.5a3.8 3.8 0 1 1-3.5-3.5 3.8 3.8 0 0 1 3.5 3.5z"};function O(s){let e=document.createElementNS("http://www.w3.org/2000/svg","svg");e.setAttribute("viewBox","0 0 20 20"),e.setAttribute("aria-hidden","true");let t=document.createElementNS("http://www.w3.org/2000/svg","path");return t.setAttribute("d",de[s]),e.append(t),e}var K=[100,200,500,1e3,2e3],le=900,he=900,ce=8e3,ue=500,ge=96*1024*1024,B=4001,pe=[4401,4403],me=4410,f="-";function Q(s){let e=new URL("socket",s);return e.protocol=e.protocol.replace("http","ws"),e.href}var k=class{#e;#s;#n;#t=null;#i=!1;#a=null;#l=0;#r=0;#h=0;#o=[];#d=0;#c=new Map;#g;#u;#p=0;#m=!1;#f;#w=!1;constructor({url:e,token:t,on:n}){this.#e=e,this.#s=t,this.#n=n,this.#y()}send(e,t){if(this.#m)return;this.#l+=1;let n=`${this.#l} ${e}
${t}`;this.#o.push([this.#l,n,e]);let i=(this.#c.get(e)??0)+n.length;this.#c.set(e,i),this.#v?.send(n),i>ge&&e!==f&&(this.#T(e),this.#n.flood(e))}get#v(){let e=this.#i?this.#t:null;return e?.readyState===WebSocket.OPEN?e:void 0}#T(e){for(let t of this.#o)t[2]===e&&(t[1]=`${t[0]} ${f}
{}`);this.#c.delete(e)}leave(){this.#t?.close(B,"leaving")}drop(){this.#t?.close()}giveUp(e){if(this.#m)return;clearTimeout(this.#u),this.#u=void 0;let t=this.#t;this.#t=null,t?.close(B,"leaving"),this.#E(e)}hurry(){this.#u?(clearTimeout(this.#u),this.#y()):this.#w||this.#k()}#y(){this.#u=void 0;let e=new WebSocket(this.#e);this.#t=e,this.#i=!1,e.onopen=()=>{let t={token:this.#s,page:this.#a,received:this.#r};e.send(JSON.stringify(t))},e.onmessage=({data:t})=>{this.#t===e&&(this.#V(),this.#i?this.#O(t):this.#L(e,JSON.parse(t)))},e.onclose=({code:t,reason:n})=>{this.#t===e&&(this.#t=null,clearTimeout(this.#f),pe.includes(t)?this.#E("unknown"):t===me?this.#E(n):this.#m||this.#M())}}#V(){this.#w&&this.#n.state("connected"),this.#w=!1,this.#b(le,()=>{this.#k()})}#k(){!this.#t||!this.#i||(this.#x(),this.#b(he,()=>{this.#S()}))}#S(){this.#w=!0,this.#n.state("reconnecting"),this.#b(ce,()=>{let e=this.#t;this.#t=null,e?.close(),this.#M()})}#b(e,t){let n=performance.now()+e;clearTimeout(this.#f),this.#f=setTimeout(()=>{document.hidden?this.#b(e,t):performance.now()>n+ue?this.#k():t()},e)}#M(){this.#w=!1,this.#n.state("reconnecting");let e=K[Math.min(this.#p,K.length-1)];this.#p+=1,this.#u=setTimeout(()=>{this.#y()},e)}#L(e,{page:t,received:n,resumed:i}){this.#a!==null&&!i&&(this.#l=this.#r=this.#h=0,this.#o=[],this.#d=0,this.#c.clear(),this.#n.fresh()),this.#p=0,this.#a=t,this.#i=!0,this.#A(n);for(let[,o]of this.#o.slice(this.#d))e.send(o);this.#n.state("connected")}#O(e){let t=e.indexOf(`
`);if(t<0){this.#A(Number(e));return}let n=e.indexOf(" ");Number(e.slice(0,n))===this.#r+1&&(this.#r+=1,this.#N(),this.#n.frame(e.slice(n+1,t),e.slice(t+1)))}#A(e){for(;;){let t=this.#o[this.#d];if(!t||t[0]>e)break;let[,n,i]=t;this.#d+=1;let o=(this.#c.get(i)??0)-n.length;o>0?this.#c.set(i,o):this.#c.delete(i)}this.#d*2>=this.#o.length&&(this.#o.splice(0,this.#d),this.#d=0)}#N(){this.#r-this.#h>=32||document.hidden?this.#x():this.#g??=setTimeout(()=>{this.#x()},50)}#x(){clearTimeout(this.#g),this.#g=void 0,this.#h=this.#r,this.#v?.send(String(this.#r))}#E(e){this.#m=!0,clearTimeout(this.#f),clearTimeout(this.#g),this.#n.state("over",e)}};var fe=1e4,x=class{number;link;state="connecting";#e;constructor(e,{url:t,token:n},i){this.number=e,this.#e=i,this.link=new k({url:t,token:n,on:this.#i()})}notify(e){this.link.send(f,JSON.stringify(e))}send(e,t){this.link.send(e,t)}#s(e){let{views:t,questions:n}=this.#e,i=e;switch(i.do){case"mount":t.mount(this,i);break;case"unmount":t.drop(this,i.view);break;case"gone":t.showGone(this,i);break;case"trouble":t.get(this,i.view)?.setTrouble(i);break;case"marks":t.get(this,i.view)?.setMarks(i);break;case"named":t.get(this,i.view)?.setName(i);break;case"mode":t.get(this,i.view)?.setMode(i.mode);break;case"clear":t.clearStorage(i.origins);break;case"ask":n.ask(this,i,o=>{this.#n(i,o)});break;case"unask":n.withdraw(this,i.id);break;case"download":we(i);break;default:this.#e.onMessage(e)}}#n(e,t){this.notify({do:"answer",id:e.id,value:t}),e.kind==="link"&&t&&window.open(e.url,"_blank","noopener,noreferrer")}#t(){this.#e.views.clear(this),this.#e.questions.clear(this)}#i(){let{views:e,onState:t,onFresh:n}=this.#e;return{frame:(i,o)=>{let a=JSON.parse(o);i===f?this.#s(a):e.get(this,i)?.post(a)},state:(i,o)=>{this.state=i,i==="over"?this.#t():e.setReached(this,i==="connected"),t(this,o)},fresh:()=>{this.#t(),n?.()},flood:i=>{e.drop(this,i),this.notify({do:"broken",view:i,reason:"it sends more than the host takes"})}}}};function we({name:s,mime:e,data:t}){let n=Uint8Array.from(atob(t),o=>o.charCodeAt(0)),i=URL.createObjectURL(new Blob([n],{type:e}));r("a",{href:i,download:s}).click(),setTimeout(()=>{URL.revokeObjectURL(i)},fe)}var U=s=>({do:"surroundings",value:{locale:navigator.language,timeZone:Intl.DateTimeFormat().resolvedOptions().timeZone,userAgent:"transom",platform:"web",deviceCapabilities:{touch:navigator.maxTouchPoints>0,hover:matchMedia("(hover: hover)").matches},...s}});function E({view:s,shown:e=s,server:t,client:n}){let i=[r("b",{text:e})," from ",r("b",{text:t})];return n&&i.push(" for ",r("b",{text:n})),r("span",{class:"whose",part:"whose"},...i)}var N=(...s)=>r("div",{class:"caption",part:"caption"},...s),R=s=>s.replace(/\.?$/,".");function M(s,e,t,n="alert"){let i=Object.entries(t).map(([a,d])=>{let h={type:"button",text:a,"aria-label":`${a}: ${s}`},c=r("button",h);return c.addEventListener("click",()=>{for(let l of i)l.disabled=!0;d()}),c});return r("div",{class:"trouble",part:"note",role:n},r("p",{text:e}),...i)}function C(s,e,t){let n=e.map(d=>{let h=d.by==="view"?"The View calls its server's ":"The model calls ",c=`Ask again before ${d.shown}: ${s}`,l=r("button",{type:"button",text:"Ask again","aria-label":c});l.addEventListener("click",()=>{l.disabled=!0,t(d)});let u=r("span",{},h,r("code",{text:d.shown}));return r("li",{},u,l)}),o={class:"grants",part:"grants",role:"region","aria-label":`Always allowed: ${s}`},a=r("p",{text:"You are not asked before"});return r("div",o,a,r("ul",{},...n))}var Y=500,ve=1500,be=100,X=2e4,ye=s=>s.length<=X?s:`${s.slice(0,X)}
… (${s.length} characters)`;function ke(s){let e=["bytes","KB","MB"],t=0,n=s;for(;n>=1024&&t<2;t+=1)n/=1024;return`${t?n.toFixed(1):n} ${e[t]}`}var g=s=>r("p",{text:s}),J=s=>r("blockquote",{text:s}),$=s=>r("pre",{text:ye(s),tabindex:"0"}),H=["Refuse",!1],xe=()=>({title:["That question was withdrawn"],body:[g("Whoever asked does not need an answer any more.")],answers:[["Next question",!1]]});function Ee(s){switch(s.kind){case"approve":return Me(s);case"link":{let{href:e,host:t}=Ae(s.url);return{title:[s.url.startsWith("mailto:")?"Write this mail?":`Open ${t}?`],body:[g("The View wants to open:"),$(e)],answers:[["Open",!0],H]}}case"download":{let{files:e}=s,t=e.map(n=>`${n.name}  (${ke(n.bytes)})`);return{title:[e.length===1?"Save this file?":`Save ${e.length} files?`],body:[g("The View wants to save:"),$(t.join(`
`))],answers:[["Save",!0],H]}}case"pin":{let e="It would not be closed to make room for others, until you close it.",{reason:t}=s,n=t?[g("The View says why:"),J(t)]:[];return{title:["Keep this View open?"],body:[g(e),...n],answers:[["Keep open",!0],H]}}default:return}}function Me(s){let{tool:e,by:t,opens:n,description:i,arguments:o,changed:a,granted:d=[]}=s,h=r("code",{text:e}),c=t==="view"?"Let the View call its server's ":"Let the model call ",l=[];return i&&(l.push(g(`The ${n?"server":"View"} says what it does:`)),l.push(J(i))),Object.keys(o).length===0?l.push(g("It is called without arguments.")):l.push(g("It is called with:"),$(JSON.stringify(o,null,2))),a&&l.push(g("You always allowed this tool. It has changed since, so you are asked again.")),d.length&&l.push(g(`You always allow this View: ${d.join(", ")}.`)),{title:n?["Let ",h," open a View?"]:[c,h,"?"],body:l,answers:[["Allow","allow"],["Always allow","always"],["Refuse","deny"]]}}function Ae(s){try{return new URL(s)}catch{return{href:s,host:"this link"}}}function Te(){let s=document.activeElement;for(;s?.shadowRoot?.activeElement;)s=s.shadowRoot.activeElement;return s}var A=class{#e;#s;#n=r("div",{class:"questions","aria-live":"polite"});#t=[];#i;#a=Y;#l=0;#r;#h=!1;constructor(e,t){this.#e=e,this.#s=t,y(e).append(this.#n);let n=()=>{this.#h||this.#w()};addEventListener("pointerdown",n,!0),addEventListener("keydown",({key:i})=>{(i==="Enter"||i===" ")&&n()},!0),addEventListener("resize",()=>{this.#w()})}ask(e,t,n){let i=Ee(t);i&&(this.#t.push({asker:e,question:t,card:i,onAnswer:n}),this.#i?this.#f():this.#c())}withdraw(e,t){this.#o(n=>n.asker===e&&n.question.id===t)}clear(e){this.#o(t=>t.asker===e)}#o(e){this.#t=this.#t.filter(n=>!e(n));let t=this.#i?.entry&&!e(this.#i.entry);!this.#i||t?this.#f():this.#t.length===0?this.#c():this.#i.entry?this.#p(xe()):this.#f()}#d(e){let t=this.#i?.entry;this.#c(),t?.onAnswer(e)}#c(){let e=this.#t.shift();e?this.#p(e.card,e):this.#g()}#g(){this.#u(),this.#s.onShown(),this.#f()}#u(){clearInterval(this.#r),this.#i?.section.remove(),this.#i=void 0}#p(e,t){let n=Te();this.#u();let i=this.#m(e,t);this.#i=i;let o=this.#s.onShown(t?.asker,t?.question);this.#a=n instanceof HTMLIFrameElement?ve:Y,this.#r=setInterval(()=>{this.#v()},be),this.#n.append(i.section),(t?.question.kind!=="approve"&&n===o||!n||n===document.body)&&i.section.focus(),this.#w(),this.#f()}#m({title:e,body:t,answers:n},i){let o=r("h2",{},...e),a=r("span",{class:"more"}),d=n.map(([u,z],v)=>{let m=r("button",{type:"button",text:u,class:v?"":"main"});return m.addEventListener("click",()=>{this.#h&&this.#d(z)}),m}),h=i?.question.server?E(i.question):"",c=o.textContent,l=r("section",{class:"question",part:"question",role:"alertdialog","aria-label":c,tabindex:"-1"},r("div",{class:"asker"},h,a),o,...t,r("div",{class:"buttons"},...d));return l.addEventListener("keydown",u=>{u.key==="Escape"&&(u.stopPropagation(),this.#d(n.at(-1)[1]))}),{entry:i,section:l,buttons:d,more:a}}#f(){let e=this.#t.length;this.#i&&(this.#i.more.textContent=e?`and ${e} more`:""),this.#e.toggleAttribute("data-asking",!!this.#i),this.#s.onCount?.(e+(this.#i?.entry?1:0))}#w(){this.#l=performance.now(),this.#v()}#v(){let e=performance.now();(document.hidden||!document.hasFocus())&&(this.#l=e),this.#h=e-this.#l>=this.#a;for(let t of this.#i?.buttons??[])t.ariaDisabled=String(!this.#h)}};var T="ui/notifications/sandbox-",Z=`${T}proxy-ready`,ee=`${T}resource-ready`,te=`${T}view-gone`,q=s=>s?.method;function ne(s){let e=q(s);return typeof e=="string"&&e.startsWith(T)}var I="/transom-view",Ve=["inline","fullscreen","pip"],Se="allow-scripts allow-same-origin allow-forms",V=16*1024*1024,ie=6e3,Le=10,Oe=100,Ne=12e3,Re=1e3,Ce=500,He=8;function $e(s){let{paddingLeft:e,paddingRight:t}=getComputedStyle(s),n=s.clientWidth-parseFloat(e)-parseFloat(t)-2;return{width:Math.max(0,Math.floor(n)),maxHeight:ie}}var qe=s=>s.length*3>V&&(s.length>V||new Blob([s]).size>V);function Ie(s){try{return JSON.stringify(s)}catch{return}}var S=class extends HTMLElement{isPlaced=!1;key="";origin="";#e="";#s=y(this);#n;#t;#i;#a;get agent(){return this.#n.agent}get frame(){return this.#t?.frame}get window(){return this.frame?.contentWindow??null}get mode(){return this.dataset.mode}start(e,t){let{view:n,origin:i,number:o,allow:a,border:d}=e,h=this.#l(e,t,"loading");this.origin=i,this.toggleAttribute("data-trouble",!1),d||(this.dataset.border="none");let c=r("span",{class:"starting",text:"starting…"}),l=r("span",{class:"own"},c),v=r("span",{class:"pin",role:"img",title:"It stays open until you close it","aria-label":"Pinned"},O("pin")),m=r("span",{class:"busy",part:"busy",role:"timer",hidden:""}),D={key:this.#o("key","What is always allowed",()=>{this.#d()}),fullscreen:this.#o("fullscreen","Full screen",()=>{this.toggle("fullscreen")}),pip:this.#o("pip","Picture in the corner",()=>{this.toggle("pip")}),close:this.#o("close","Close",()=>{this.close()})},F=`${i}${I}?${o}`,se={sandbox:Se,title:`View ${this.#e}`,src:F,part:"frame"},p=r("iframe",se);a&&p.setAttribute("allow",a);let b={mount:e,frame:p,own:l,pin:v,busy:m,buttons:D,grants:C(this.#e,[],()=>{}),loads:0,reports:0,height:0,isFilled:!1};p.addEventListener("load",()=>{b.loads>0||(p.style.visibility="hidden",setTimeout(()=>{this.#t===b&&b.loads===0&&(p.src=F)},Re))}),this.#t=b;let oe=r("span",{class:"buttons"},...Object.values(D));this.#s.append(N(h,v,m,l,oe),p),this.setMarks({pinned:!1,grants:[]}),this.#i=setTimeout(()=>{let re=`${i} did not load in the browser`;this.agent.notify({do:"broken",view:n,reason:re,value:!0})},Ne)}#l(e,t,n){let{view:i,shown:o=i}=e,{number:a}=t.agent;this.#n=t,this.key=i,this.#e=o,this.id||=`view-${a?`${a}:`:""}${i}`,this.dataset.mode="inline",this.#r(n),this.setAttribute("role","region");let d=E(e);return this.setAttribute("aria-label",`View ${d.textContent}`),d}#r(e){clearTimeout(this.#i),clearInterval(this.#a),this.#t=void 0,this.hidden=!1,this.dataset.state=e,this.#s.replaceChildren()}showGone(e,t){let{view:n,failed:i,reason:o,about:a}=e,{agent:d}=t,h=this.#l(e,t,i?"failed":"closed");a&&h.append(" ",r("span",{class:"about",text:a}));let c=R(i?`It could not be shown: ${o}`:o),l={[i?"Try again":"Reopen"]:()=>{d.notify({do:"retry",view:n})},[i?"Close":"Dismiss"]:()=>{d.notify({do:"closed",view:n})}},u=M(this.#e,c,l,i?"alert":"group");this.#s.append(N(h),u),i&&this.#h("failed",o)}#h(e,t){let n={view:this.key,kind:e,message:t};this.dispatchEvent(new CustomEvent("problem",{bubbles:!0,composed:!0,detail:n}))}note(e,t={}){this.#r("noted"),this.toggleAttribute("data-held",!1),this.#s.append(M(this.getAttribute("view")??this.#e,e,t))}#o(e,t,n){let i={type:"button",title:t,"aria-label":`${t}: ${this.#e}`},o=r("button",i,O(e));return o.addEventListener("click",n),o}disconnectedCallback(){clearTimeout(this.#i),clearInterval(this.#a)}setName({name:e,version:t}){if(!this.#t)return;let{own:n,mount:i}=this.#t,o=`calls itself “${e}” ${t}`.trimEnd();n.title=n.textContent=`${e?`${o} · `:""}${i.uri}`}setMarks({pinned:e,grants:t}){let n=this.#t;if(!n)return;let{pin:i,buttons:o}=n;i.hidden=!e,o.key.hidden=t.length===0;let a=n.grants.isConnected&&t.length>0;n.grants.remove(),n.grants=C(this.#e,t,({tool:d,by:h})=>{this.agent.notify({do:"withdraw",view:this.key,tool:d,by:h})}),a?this.#d():o.key.setAttribute("aria-expanded","false")}#d(){let{grants:e,buttons:t}=this.#t,n=!e.isConnected;n?this.#s.querySelector(".caption").after(e):e.remove(),t.key.setAttribute("aria-expanded",String(n)),this.#n.hold(this)}toggle(e){this.setMode(this.mode===e?"inline":e)}setMode(e){if(Ve.includes(e)){e!=="inline"&&this.#n.makeRoom(this,e),this.mode!==e&&this.#n.hold(this),this.dataset.mode=e;for(let t of["fullscreen","pip"])this.#t?.buttons[t].setAttribute("aria-pressed",String(e===t));this.#n.rearrange(),this.sendMode()}}sendMode(){if(!this.frame)return;let{clientWidth:e,clientHeight:t}=this.frame,{mode:n,key:i}=this,o=n==="inline"?$e(this.#n.place):{width:e,height:t};this.agent.notify({do:"mode",view:i,mode:n,size:o})}close(){this.hidden=!0,this.#n.rearrange(),this.agent.notify({do:"closed",view:this.key})}#c(e,t){let{height:n}=Object(t),i=Math.min(Math.ceil(Number(n)),ie);i>0&&(e.frame.style.height=`${i}px`,!(Math.abs(i-e.height)<He)&&(e.height=i,this.#n.hold(this)))}post(e){this.window?.postMessage(e,this.origin),this.look()}look(){let e=this.#t,t=e?.frame.contentWindow;t&&(t.length>0?e.isFilled=!0:e.isFilled&&(e.isFilled=!1,setTimeout(()=>{this.#t!==e||t.length>0||this.#u(e,"vanished","its page crashed or was unloaded")},Ce)))}receive(e){let t=this.#t;if(!t)return;let n=q(e);if(ne(e)){n===Z?this.#m(t):n===te&&this.#u(t,"vanished","its page shows something else now");return}n==="ui/notifications/size-changed"?this.#c(t,e.params):n==="ui/notifications/initialized"&&(this.dataset.state="live");let i=Ie(e);i===void 0?this.#g(t,e,"is not JSON"):qe(i)?this.#g(t,e,`is larger than ${V} bytes`):this.agent.send(this.key,i)}#g(e,t,n){let{id:i,method:o}=Object(t);if(this.#u(e,"refused",`A message ${n}`),o===void 0&&(typeof i=="number"||typeof i=="string")){let a={code:-32603,message:`The View's answer ${n}: it was not passed on`};this.agent.send(this.key,JSON.stringify({jsonrpc:"2.0",id:i,error:a}))}}#u(e,t,n){e.reports+=1,!(e.reports>Oe)&&this.agent.notify({do:t,view:this.key,reason:n})}setTrouble({reason:e,busyFor:t}){let n=this.#t;if(!n||(this.#p(n,t),n.trouble?.remove(),this.toggleAttribute("data-trouble",!!e),!e))return;let{key:i}=this;n.trouble=M(this.#e,`It does not respond: ${R(e)}`,{Reload:()=>{this.agent.notify({do:"reload",view:i})},Close:()=>{this.close()}}),n.frame.before(n.trouble),this.#n.hold(this),this.#h("unresponsive",e)}#p({busy:e},t){if(clearInterval(this.#a),e.hidden=t===null,t===null)return;let n=performance.now()-t*1e3,i=()=>{e.textContent=`busy for ${Math.round((performance.now()-n)/1e3)} s`};i(),this.#a=setInterval(i,1e3)}#m(e){let{frame:t,mount:n}=e;if(clearTimeout(this.#i),t.style.visibility="",e.loads+=1,e.loads>Le){this.agent.notify({do:"broken",view:this.key,reason:"it keeps reloading itself"});return}let i={html:n.html,allow:n.allow};this.post({jsonrpc:"2.0",method:ee,params:i})}};var Pe=1e3,_e=500,P=(s,e)=>`${s.number} ${e}`,L=class{#e=new Map;#s=new Map;#n;#t;constructor(e){this.#n=e,window.addEventListener("message",({source:t,origin:n,data:i})=>{let o=this.#s.get(t);o?.origin===n&&o.receive(i)}),setInterval(()=>{for(let t of this.#e.values())t.look()},Pe)}get(e,t){return this.#e.get(P(e,t))}mount(e,t){let n=this.#i(e,t.view);n.start(t,this.#l(e,n)),this.#s.set(n.window,n),this.#a(n),n.isPlaced&&n.sendMode()}showGone(e,t){let n=this.#i(e,t.view);n.showGone(t,this.#l(e,n)),t.failed?this.#a(n):this.#r()}clearStorage(e){for(let t of e){let n={src:`${t}${I}`,sandbox:"",hidden:""},i=r("iframe",n);i.addEventListener("load",()=>{i.remove()}),document.body.append(i)}}#i(e,t){this.drop(e,t);let n=this.#n(t);return this.#e.set(P(e,t),n),n}#a(e){this.#r(),e.isPlaced||e.scrollIntoView({block:"nearest"})}#l(e,t){return{agent:e,place:t.isPlaced?t:t.parentElement,makeRoom:this.#o,rearrange:this.#d,hold:this.#r}}drop(e,t){let n=this.get(e,t);n&&(this.#e.delete(P(e,t)),this.#s.delete(n.window),n.isPlaced?n.note(""):n.remove(),this.#r(),this.#d())}clear(e){for(let t of this.#h(e))this.drop(e,t.key)}pointAt(e,t){let n=e&&t!==void 0?this.get(e,t):void 0;for(let i of this.#e.values())i.toggleAttribute("data-question",i===n);if(n?.frame)return this.#r(),n.scrollIntoView({block:"nearest"}),n.frame}#r=e=>{let t=n=>{for(let i of this.#e.values())i.toggleAttribute("data-held",n&&i!==e)};t(!0),clearTimeout(this.#t),this.#t=setTimeout(t,_e,!1)};setReached(e,t){for(let n of this.#h(e))n.toggleAttribute("data-lost",!t)}#h(e){return[...this.#e.values()].filter(t=>t.agent===e)}onResized(){for(let e of this.#e.values())(e.isPlaced||e.mode!=="inline")&&e.sendMode()}get fullscreen(){return[...this.#e.values()].find(e=>e.mode==="fullscreen"&&!e.hidden)}#o=(e,t)=>{for(let n of this.#e.values())n!==e&&n.mode===t&&n.setMode("inline")};#d=()=>{let e=this.fullscreen;document.body.toggleAttribute("data-covered",e!==void 0);for(let t of this.#e.values())t.inert=e!==void 0&&t!==e}};function w(s,e,t){let n=e==="approval",i=new CustomEvent(e,{bubbles:!0,composed:!0,cancelable:n,detail:t});return!s.dispatchEvent(i)}var _=class{#e=r("div",{id:"transom-questions"});#s;#n;#t=new Map;constructor(e,t){this.#n=t,this.#s=new A(this.#e,{onShown:(n,i)=>e.pointAt(n,i?.view)})}ask(e,t,n){let{id:i,do:o,...a}=t,d=new AbortController,h=l=>{this.#t.delete(i)&&n(l)};this.#t.set(i,d);let c={...a,answer:h,withdrawn:d.signal};w(this.#n(t.view),"approval",c)||this.#t.delete(i)&&(this.#e.isConnected||document.body.append(this.#e),this.#s.ask(e,t,n))}withdraw(e,t){this.#t.get(t)?.abort(),this.#t.delete(t),this.#s.withdraw(e,t)}clear(e){for(let t of[...this.#t.keys()])this.withdraw(e,t);this.#s.clear(e)}},We=s=>s==="unknown"?"You are not signed in, or this page may not show Views.":`${s}.`,W=class{#e=new Map;#s=new Set;#n=new Set;#t=matchMedia("(prefers-color-scheme: dark)");#i=new L(e=>this.#e.get(e)??document.createElement("transom-view"));#a;#l;constructor(e){this.#a=new x(0,{url:e,token:""},{views:this.#i,questions:new _(this.#i,t=>this.#e.get(t)??document),onMessage:t=>{this.#c(t)},onFresh:()=>{this.#s.clear();for(let t of this.#e.keys())this.#d(t)},onState:({state:t},n)=>{if(t==="connected")this.#p(!0);else if(t==="reconnecting")w(document,"problem",{kind:"connection",message:"No connection. Trying again…"});else if(t==="over"){let i=We(n);for(let o of this.#e.values())o.note(i);w(document,"problem",{kind:"over",message:i})}}}),this.#r()}#r(){let{link:e}=this.#a,t=()=>{e.hurry()},n=()=>{this.#p(!1)};addEventListener("resize",()=>{this.#i.onResized()}),addEventListener("keydown",({key:i})=>{i==="Escape"&&this.#i.fullscreen?.setMode("inline")}),addEventListener("pagehide",()=>{e.leave()}),addEventListener("pageshow",({persisted:i})=>{i&&location.reload()}),addEventListener("online",t),document.addEventListener("visibilitychange",t),this.#t.addEventListener("change",n),new MutationObserver(n).observe(document.documentElement,{attributes:!0})}add(e,t){if(this.#e.has(e)){t.note("This View is shown elsewhere on this page.");return}this.#e.set(e,t),t.note("Opening…"),this.#d(e)}remove(e,t){this.#e.get(e)===t&&(this.#e.delete(e),this.#i.drop(this.#a,e),this.#o(e,"gone"))}addStage(e){this.#n.add(e);for(let t of this.#s)this.#h(e,t)}removeStage(e){this.#n.delete(e)}#h(e,t){this.#e.has(t)||e.append(r("transom-view",{view:t}))}#o(e,t){this.#a.notify({do:"place",view:e,value:t})}#d(e){this.#o(e,document.hidden?"free":"take")}#c(e){let{view:t}=e,n=()=>{this.#o(t,"again")};switch(e.do){case"offer":this.#g(e);break;case"elsewhere":this.#e.get(t)?.note("This View is open in another tab or window.",{"Show it here":n});break;case"absent":this.#u(t,e.reason,e.again?{"Open again":n}:{});break}}#g({do:e,new:t,...n}){let{view:i}=n;this.#s.add(i);let[o]=this.#n;this.#e.has(i)?this.#o(i,"free"):t&&w(o??document,"opened",n),o&&this.#h(o,i)}#u(e,t,n){let i=this.#e.get(e);this.#s.delete(e),i?.note(`This View was closed: ${t}.`,n),w(i??document,"closed",{view:e,reason:t}),i?.parentElement&&this.#n.has(i.parentElement)&&i.remove()}#p(e){let t=this.#m();(e||t!==this.#l)&&this.#a.notify(U({theme:t})),this.#l=t}#m(){let{colorScheme:e}=getComputedStyle(document.documentElement),t=e.includes("dark");return(t&&e.includes("light")?this.#t.matches:t)?"dark":"light"}};function ze(s){class e extends S{static observedAttributes=["view"];isPlaced=!0;#e=null;connectedCallback(){this.#s(this.getAttribute("view"))}disconnectedCallback(){super.disconnectedCallback(),this.#s(null)}attributeChangedCallback(i,o,a){this.isConnected&&this.#s(a)}#s(i){i!==this.#e&&(this.#e&&s.remove(this.#e,this),this.#e=i,i&&s.add(i,this))}}class t extends HTMLElement{connectedCallback(){s.addStage(this)}disconnectedCallback(){s.removeStage(this)}}customElements.define("transom-view",e),customElements.define("transom-stage",t)}ze(new W(Q(import.meta.url)));
