// Built from js/src by `make js`.
var H=[100,200,500,1e3,2e3],at=900,ht=900,lt=8e3,dt=500,ct=96*1024*1024,K=4001,ut=[4401,4403],ft=4410,g="-",k=class{#t;#i;#e;#s=null;#n=!1;#o=null;#r=0;#a=0;#c=0;#l=[];#h=0;#u=new Map;#f;#d;#g=0;#m=!1;#b;#p=!1;constructor({url:t,token:e,on:s}){this.#t=t,this.#i=e,this.#e=s,this.#w()}send(t,e){if(this.#m)return;this.#r+=1;let s=`${this.#r} ${t}
${e}`;this.#l.push([this.#r,s,t]);let n=(this.#u.get(t)??0)+s.length;this.#u.set(t,n),this.#v?.send(s),n>ct&&t!==g&&(this.#y(t),this.#e.flood(t))}get#v(){let t=this.#n?this.#s:null;return t?.readyState===WebSocket.OPEN?t:void 0}#y(t){for(let e of this.#l)e[2]===t&&(e[1]=`${e[0]} ${g}
{}`);this.#u.delete(t)}leave(){this.#s?.close(K,"leaving")}drop(){this.#s?.close()}giveUp(t){if(this.#m)return;clearTimeout(this.#d),this.#d=void 0;let e=this.#s;this.#s=null,e?.close(K,"leaving"),this.#T(t)}hurry(){this.#d?(clearTimeout(this.#d),this.#w()):this.#p||this.#k()}#w(){this.#d=void 0;let t=new WebSocket(this.#t);this.#s=t,this.#n=!1,t.onopen=()=>{let e={token:this.#i,page:this.#o,received:this.#a};t.send(JSON.stringify(e))},t.onmessage=({data:e})=>{this.#s===t&&(this.#E(),this.#n?this.#L(e):this.#O(t,JSON.parse(e)))},t.onclose=({code:e,reason:s})=>{this.#s===t&&(this.#s=null,clearTimeout(this.#b),ut.includes(e)?this.#T("unknown"):e===ft?this.#T(s):this.#m||this.#A())}}#E(){this.#p&&this.#e.state("connected"),this.#p=!1,this.#x(at,()=>{this.#k()})}#k(){!this.#s||!this.#n||(this.#S(),this.#x(ht,()=>{this.#$()}))}#$(){this.#p=!0,this.#e.state("reconnecting"),this.#x(lt,()=>{let t=this.#s;this.#s=null,t?.close(),this.#A()})}#x(t,e){let s=performance.now()+t;clearTimeout(this.#b),this.#b=setTimeout(()=>{document.hidden?this.#x(t,e):performance.now()>s+dt?this.#k():e()},t)}#A(){this.#p=!1,this.#e.state("reconnecting");let t=H[Math.min(this.#g,H.length-1)];this.#g+=1,this.#d=setTimeout(()=>{this.#w()},t)}#O(t,{page:e,received:s,resumed:n}){this.#o!==null&&!n&&(this.#r=this.#a=this.#c=0,this.#l=[],this.#h=0,this.#u.clear(),this.#e.fresh()),this.#g=0,this.#o=e,this.#n=!0,this.#M(s);for(let[,r]of this.#l.slice(this.#h))t.send(r);this.#e.state("connected")}#L(t){let e=t.indexOf(`
`);if(e<0){this.#M(Number(t));return}let s=t.indexOf(" ");Number(t.slice(0,s))===this.#a+1&&(this.#a+=1,this.#q(),this.#e.frame(t.slice(s+1,e),t.slice(e+1)))}#M(t){for(;;){let e=this.#l[this.#h];if(!e||e[0]>t)break;let[,s,n]=e;this.#h+=1;let r=(this.#u.get(n)??0)-s.length;r>0?this.#u.set(n,r):this.#u.delete(n)}this.#h*2>=this.#l.length&&(this.#l.splice(0,this.#h),this.#h=0)}#q(){this.#a-this.#c>=32||document.hidden?this.#S():this.#f??=setTimeout(()=>{this.#S()},50)}#S(){clearTimeout(this.#f),this.#f=void 0,this.#c=this.#a,this.#v?.send(String(this.#a))}#T(t){this.#m=!0,clearTimeout(this.#b),clearTimeout(this.#f),this.#e.state("over",t)}};var D=`/* Views and questions, in roots of their own. A page sets the --transom-* variables, or styles the parts. */

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
`;var x="ui/notifications/sandbox-",mt=["inline","fullscreen","pip"],wt="allow-scripts allow-same-origin allow-forms",E=16*1024*1024,P=6e3,gt=10,bt=100,Y="/transom-view",vt=12e3,yt=1e3,kt=1e3,xt=500,Et=500,St=8,Tt={fullscreen:"M3 8V3h5M12 3h5v5M17 12v5h-5M8 17H3v-5",pip:"M3 4h14v12H3zM11 10h4v4h-4z",close:"M5 5l10 10M15 5L5 15",pin:"M7 3h6M8 3v5l-3 4h10l-3-4V3M10 12v5",key:"M11 9l6-6M14 6l2.5 2.5M12 11.5a3.8 3.8 0 1 1-3.5-3.5 3.8 3.8 0 0 1 3.5 3.5z"},X=new CSSStyleSheet;X.replaceSync(D);function C(i){let t=i.attachShadow({mode:"open"});return t.adoptedStyleSheets=[X],t}function o(i,{text:t,...e}={},...s){let n=document.createElement(i);for(let[r,a]of Object.entries(e))n.setAttribute(r,a);return t!==void 0&&(n.textContent=t),n.append(...s),n}function G(i){let t=document.createElementNS("http://www.w3.org/2000/svg","svg");t.setAttribute("viewBox","0 0 20 20"),t.setAttribute("aria-hidden","true");let e=document.createElementNS("http://www.w3.org/2000/svg","path");return e.setAttribute("d",Tt[i]),t.append(e),t}function R({view:i,shown:t=i,server:e,client:s}){let n=[o("b",{text:t})," from ",o("b",{text:e})];return s&&n.push(" for ",o("b",{text:s})),o("span",{class:"whose",part:"whose"},...n)}function At(i){let{paddingLeft:t,paddingRight:e}=getComputedStyle(i),s=i.clientWidth-parseFloat(t)-parseFloat(e)-2;return{width:Math.max(0,Math.floor(s)),maxHeight:P}}var Mt=i=>i.length*3>E&&(i.length>E||new Blob([i]).size>E),S=class extends HTMLElement{#t=C(this);#i;#e;#s=0;#n=0;#o=null;#r=null;#a=0;#c=!1;#l=null;#h=null;#u=0;#f=0;#d={};start(t,e){let{view:s,origin:n,number:r,allow:a,border:h}=t,l=this.#g(t,e,"loading"),{shown:c}=this;this.origin=n,this.#i=t,this.#s=this.#n=this.#u=0,this.toggleAttribute("data-trouble",!1),h||(this.dataset.border="none"),this.own=o("span",{class:"own"},o("span",{class:"starting",text:"starting…"}));let y={class:"pin",role:"img",title:"It stays open until you close it","aria-label":"Pinned"};this.#l=o("span",y,G("pin")),this.#r=o("span",{class:"busy",part:"busy",role:"timer",hidden:""}),this.#c=!1;let ot=o("span",{class:"buttons"},this.#p("key","What is always allowed",()=>this.#v()),this.#p("fullscreen","Full screen",()=>this.toggle("fullscreen")),this.#p("pip","Picture in the corner",()=>this.toggle("pip")),this.#p("close","Close",()=>this.close())),rt=`View ${c}`,B=`${n}${Y}?${r}`;this.frame=o("iframe",{sandbox:wt,title:rt,src:B,part:"frame"}),a&&this.frame.setAttribute("allow",a),this.frame.addEventListener("load",({target:w})=>{this.#s>0||(w.style.visibility="hidden",setTimeout(()=>{w===this.frame&&this.#s===0&&(w.src=B)},yt))}),this.#t.append(U(l,this.#l,this.#r,this.own,ot),this.frame),this.setMarks({pinned:!1,grants:[]}),this.#f=setTimeout(()=>{let w=`${n} did not load in the browser`;this.#e.notify({do:"broken",view:s,reason:w,value:!0})},vt)}#g(t,e,s){let{view:n,shown:r=n}=t;this.#e=e,this.view=n,this.shown=r,this.id||=`view-${e.mark}${n}`,this.dataset.mode="inline",this.#m(s),this.setAttribute("role","region");let a=R(t);return this.setAttribute("aria-label",`View ${a.textContent}`),a}#m(t){clearTimeout(this.#f),clearInterval(this.#a),this.frame=void 0,this.hidden=!1,this.dataset.state=t,this.#t.replaceChildren()}showGone(t,e){let{view:s,failed:n,reason:r,about:a}=t,h=this.#g(t,e,n?"failed":"closed");a&&h.append(" ",o("span",{class:"about",text:a}));let l=j(n?`It could not be shown: ${r}`:r),c={[n?"Try again":"Reopen"]:()=>e.notify({do:"retry",view:s}),[n?"Close":"Dismiss"]:()=>e.notify({do:"closed",view:s})};this.#t.append(U(h),L(this.shown,l,c,n?"alert":"group")),n&&this.#b("failed",r)}#b(t,e){let s={view:this.view,kind:t,message:e};this.dispatchEvent(new CustomEvent("problem",{bubbles:!0,composed:!0,detail:s}))}note(t,e={}){this.#m("noted"),this.toggleAttribute("data-held",!1);let s=this.getAttribute("view")??this.shown;this.#t.append(L(s,t,e))}#p(t,e,s){let n={type:"button",title:e,"aria-label":`${e}: ${this.shown}`},r=o("button",n,G(t));return r.addEventListener("click",s),this.#d[t]=r,r}disconnectedCallback(){clearTimeout(this.#f),clearInterval(this.#a)}get window(){return this.frame?.contentWindow}name({name:t,version:e}){let{uri:s}=this.#i,n=`calls itself “${t}” ${e}`.trimEnd();this.own.textContent=`${t?`${n} · `:""}${s}`,this.own.title=this.own.textContent}setMarks({pinned:t,grants:e}){if(!this.frame)return;this.#l.hidden=!t,this.#d.key.hidden=e.length===0;let s=this.#h?.isConnected&&e.length>0;this.#h?.remove(),this.#h=$t(this.shown,e,({tool:n,by:r})=>this.#e.notify({do:"withdraw",view:this.view,tool:n,by:r})),s?this.#v():this.#d.key.setAttribute("aria-expanded","false")}#v(){let t=!this.#h.isConnected;t?this.#t.querySelector(".caption").after(this.#h):this.#h.remove(),this.#d.key.setAttribute("aria-expanded",String(t)),this.#e.hold(this)}toggle(t){this.setMode(this.dataset.mode===t?"inline":t)}setMode(t){if(mt.includes(t)){t!=="inline"&&this.#e.makeRoom(this,t),this.dataset.mode!==t&&this.#e.hold(this),this.dataset.mode=t;for(let e of["fullscreen","pip"])this.#d[e].setAttribute("aria-pressed",String(t===e));this.#e.rearrange(),this.sendMode()}}sendMode(){let{clientWidth:t,clientHeight:e}=this.frame,s=this.dataset.mode,n=s==="inline"?At(this.#e.place):{width:t,height:e};this.#e.notify({do:"mode",view:this.view,mode:s,size:n})}close(){this.hidden=!0,this.#e.rearrange(),this.#e.notify({do:"closed",view:this.view})}resize(t){let e=Math.min(Math.ceil(Number(t?.height)),P);e>0&&(this.frame.style.height=`${e}px`,!(Math.abs(e-this.#u)<St)&&(this.#u=e,this.#e.hold(this)))}post(t){this.window?.postMessage(t,this.origin),this.look()}look(){let{frame:t,window:e}=this;e&&(e.length>0?this.#c=!0:this.#c&&(this.#c=!1,setTimeout(()=>{this.frame!==t||e.length>0||this.#w({do:"vanished",reason:"its page crashed or was unloaded"})},xt)))}receive(t){let e=t?.method;if(typeof e=="string"){if(e.startsWith(x)){e===`${x}proxy-ready`?this.#k():e===`${x}view-gone`&&this.#w({do:"vanished",reason:"its page shows something else now"});return}e==="ui/notifications/size-changed"?this.resize(t.params):e==="ui/notifications/initialized"&&(this.dataset.state="live")}let s;try{s=JSON.stringify(t)}catch{s=void 0}s===void 0?this.#y(t,"is not JSON"):Mt(s)?this.#y(t,`is larger than ${E} bytes`):this.#e.send(this.view,s)}#y(t,e){let{id:s}=t??{};if(this.#w({do:"refused",reason:`A message ${e}`}),t?.method===void 0&&(typeof s=="number"||typeof s=="string")){let n={code:-32603,message:`The View's answer ${e}: it was not passed on`};this.#e.send(this.view,JSON.stringify({jsonrpc:"2.0",id:s,error:n}))}}#w(t){this.#n+=1,this.#n<=bt&&this.#e.notify({view:this.view,...t})}setTrouble({reason:t,busyFor:e}){if(!this.frame||(this.#E(e),this.#o?.remove(),this.toggleAttribute("data-trouble",!!t),!t))return;let{view:s,shown:n}=this;this.#o=L(n,`It does not respond: ${j(t)}`,{Reload:()=>this.#e.notify({do:"reload",view:s}),Close:()=>this.close()}),this.frame.before(this.#o),this.#e.hold(this),this.#b("unresponsive",t)}#E(t){if(clearInterval(this.#a),this.#r.hidden=t===null,t===null)return;let e=performance.now()-t*1e3,s=()=>{this.#r.textContent=`busy for ${Math.round((performance.now()-e)/1e3)} s`};s(),this.#a=setInterval(s,1e3)}#k(){if(clearTimeout(this.#f),this.frame.style.visibility="",this.#s+=1,this.#s>gt){this.#e.notify({do:"broken",view:this.view,reason:"it keeps reloading itself"});return}let{html:t,allow:e}=this.#i;this.post({jsonrpc:"2.0",method:`${x}resource-ready`,params:{html:t,allow:e}})}},U=(...i)=>o("div",{class:"caption",part:"caption"},...i),j=i=>i.replace(/\.?$/,".");function L(i,t,e,s="alert"){let n=Object.entries(e).map(([a,h])=>{let l=o("button",{type:"button",text:a,"aria-label":`${a}: ${i}`});return l.addEventListener("click",()=>{for(let c of n)c.disabled=!0;h()}),l});return o("div",{class:"trouble",part:"note",role:s},o("p",{text:t}),...n)}function $t(i,t,e){let s=t.map(r=>{let a=r.by==="view"?"The View calls its server's ":"The model calls ",h=`Ask again before ${r.shown}: ${i}`,l=o("button",{type:"button",text:"Ask again","aria-label":h});l.addEventListener("click",()=>{l.disabled=!0,e(r)});let c=o("span",{},a,o("code",{text:r.shown}));return o("li",{},c,l)}),n={class:"grants",part:"grants",role:"region","aria-label":`Always allowed: ${i}`};return o("div",n,o("p",{text:"You are not asked before"}),o("ul",{},...s))}var q=(i,t)=>`${i.number} ${t}`,T=class{#t=new Map;#i=new Map;#e=0;#s;constructor(t){this.#s=t,window.addEventListener("message",({source:e,origin:s,data:n})=>{let r=this.#i.get(e);r?.origin===s&&r.receive(n)}),setInterval(()=>{for(let e of this.#t.values())e.look()},kt)}get(t,e){return this.#t.get(q(t,e))}mount(t,e){let s=this.#n(t,e.view);s.start(e,this.#r(t,s)),this.#i.set(s.window,s),this.#o(s),s.placed&&s.sendMode()}showGone(t,e){let s=this.#n(t,e.view);s.showGone(e,this.#r(t,s)),e.failed?this.#o(s):this.#a()}clearStorage(t){for(let e of t){let s=o("iframe",{src:`${e}${Y}`,sandbox:"",hidden:""});s.addEventListener("load",()=>s.remove()),document.body.append(s)}}#n(t,e){this.drop(t,e);let s=this.#s(e);return s.agent=t,this.#t.set(q(t,e),s),s}#o(t){this.#a(),t.placed||t.scrollIntoView({block:"nearest"})}#r(t,e){return{place:e.placed?e:e.parentElement,mark:t.number?`${t.number}:`:"",notify:t.notify,send:t.send,makeRoom:this.#c,rearrange:this.#l,hold:this.#a}}drop(t,e){let s=this.get(t,e);s&&(this.#t.delete(q(t,e)),this.#i.delete(s.window),s.placed?s.note(""):s.remove(),this.#a(),this.#l())}clear(t){for(let e of[...this.#t.values()])e.agent===t&&this.drop(t,e.view)}pointAt(t,e){let s=t&&this.get(t,e);for(let n of this.#t.values())n.toggleAttribute("data-question",n===s);if(s?.frame)return this.#a(),s.scrollIntoView({block:"nearest"}),s.frame}#a=t=>{let e=s=>{for(let n of this.#t.values())n.toggleAttribute("data-held",s&&n!==t)};e(!0),clearTimeout(this.#e),this.#e=setTimeout(e,Et,!1)};reached(t,e){for(let s of this.#t.values())s.agent===t&&s.toggleAttribute("data-lost",!e)}resized(){for(let t of this.#t.values())t.frame&&(t.placed||t.dataset.mode!=="inline")&&t.sendMode()}get fullscreen(){return[...this.#t.values()].find(t=>t.dataset.mode==="fullscreen"&&!t.hidden)}#c=(t,e)=>{for(let s of this.#t.values())s!==t&&s.dataset.mode===e&&s.setMode("inline")};#l=()=>{let t=this.fullscreen;document.body.toggleAttribute("data-covered",t!==void 0);for(let e of this.#t.values())e.inert=t!==void 0&&e!==t}};var A=class{#t;#i;#e;state="connecting";constructor(t,{url:e,token:s},n){this.number=t,this.#t=n.views,this.#i=n.questions,this.#e=n,this.link=new k({url:e,token:s,on:this.#r})}notify=t=>this.link.send(g,JSON.stringify(t));send=(t,e)=>this.link.send(t,e);#s={mount:t=>this.#t.mount(this,t),unmount:({view:t})=>this.#t.drop(this,t),trouble:t=>this.#t.get(this,t.view)?.setTrouble(t),gone:t=>this.#t.showGone(this,t),marks:t=>this.#t.get(this,t.view)?.setMarks(t),clear:({origins:t})=>this.#t.clearStorage(t),named:t=>this.#t.get(this,t.view)?.name(t),mode:({view:t,mode:e})=>this.#t.get(this,t)?.setMode(e),ask:t=>this.#i.ask(this,t,e=>this.#n(t,e)),unask:({id:t})=>this.#i.withdraw(this,t),download:({name:t,mime:e,data:s})=>Ot(t,e,s)};#n({id:t,kind:e,url:s},n){this.notify({do:"answer",id:t,value:n}),e==="link"&&n&&window.open(s,"_blank","noopener,noreferrer")}#o(){this.#t.clear(this),this.#i.clear(this)}#r={frame:(t,e)=>{let s=JSON.parse(e);t===g?(this.#s[s.do]??this.#e.onMessage)(s):this.#t.get(this,t)?.post(s)},state:(t,e)=>{this.state=t,t==="over"?this.#o():this.#t.reached(this,t==="connected"),this.#e.onState(this,e)},fresh:()=>{this.#o(),this.#e.onFresh?.()},flood:t=>{this.#t.drop(this,t),this.notify({do:"broken",view:t,reason:"it sends more than the host takes"})}}};function Ot(i,t,e){let s=Uint8Array.from(atob(e),r=>r.charCodeAt(0)),n=URL.createObjectURL(new Blob([s],{type:t}));o("a",{href:n,download:i}).click(),setTimeout(()=>URL.revokeObjectURL(n),1e4)}var J=i=>({do:"surroundings",value:{locale:navigator.language,timeZone:Intl.DateTimeFormat().resolvedOptions().timeZone,userAgent:"transom",platform:"web",deviceCapabilities:{touch:navigator.maxTouchPoints>0,hover:matchMedia("(hover: hover)").matches},...i}});var Q=500,Lt=1500,qt=100,Z=2e4,Ct=i=>i.length<=Z?i:`${i.slice(0,Z)}
… (${i.length} characters)`,Rt=i=>{let t=["bytes","KB","MB"],e=0;for(;i>=1024&&e<2;e+=1)i/=1024;return`${e?i.toFixed(1):i} ${t[e]}`},u=i=>o("p",{text:i}),I=i=>o("pre",{text:Ct(i),tabindex:"0"}),tt={approve:{title:({tool:i,by:t,opens:e})=>[e?"Let ":t==="view"?"Let the View call its server's ":"Let the model call ",o("code",{text:i}),e?" open a View?":"?"],body:i=>[...Nt(i),...It(i),...Vt(i)],answers:[["Allow","allow"],["Always allow","always"],["Refuse","deny"]]},link:{title:({url:i})=>[i.startsWith("mailto:")?"Write this mail?":`Open ${et(i).host}?`],body:({url:i})=>[u("The View wants to open:"),I(et(i).href)],answers:[["Open",!0],["Refuse",!1]]},download:{title:({files:i})=>[i.length===1?"Save this file?":`Save ${i.length} files?`],body:({files:i})=>[u("The View wants to save:"),I(i.map(t=>`${t.name}  (${Rt(t.bytes)})`).join(`
`))],answers:[["Save",!0],["Refuse",!1]]},pin:{title:()=>["Keep this View open?"],body:({reason:i})=>[u("It would not be closed to make room for others, until you close it."),...i?[u("The View says why:"),o("blockquote",{text:i})]:[]],answers:[["Keep open",!0],["Refuse",!1]]},withdrawn:{title:()=>["That question was withdrawn"],body:()=>[u("Whoever asked does not need an answer any more.")],answers:[["Next question",null]]}},N={asker:null,question:{kind:"withdrawn"},onAnswer(){}};function et(i){try{return new URL(i)}catch{return{href:i,host:"this link"}}}function Nt({description:i,opens:t}){return i?[u(`The ${t?"server":"View"} says what it does:`),o("blockquote",{text:i})]:[]}function It({arguments:i}){return Object.keys(i).length===0?[u("It is called without arguments.")]:[u("It is called with:"),I(JSON.stringify(i,null,2))]}function Vt({changed:i,granted:t=[]}){let e=[];return i&&e.push("You always allowed this tool. It has changed since, so you are asked again."),t.length&&e.push(`You always allow this View: ${t.join(", ")}.`),e.map(u)}function zt(){let i=document.activeElement;for(;i?.shadowRoot?.activeElement;)i=i.shadowRoot.activeElement;return i}var M=class{#t;#i=o("div",{class:"questions","aria-live":"polite"});#e;#s;#n=[];#o=null;#r=null;#a=[];#c=null;#l=Q;#h=0;#u=0;#f=!1;constructor(t,e,s=()=>{}){this.#t=t,this.#e=e,this.#s=s,C(t).append(this.#i),addEventListener("pointerdown",()=>this.#v(),!0),addEventListener("keydown",({key:n})=>["Enter"," "].includes(n)&&this.#v(),!0),addEventListener("resize",()=>this.#y())}ask(t,e,s){tt[e.kind]&&(this.#n.push({asker:t,question:e,onAnswer:s}),this.#o?this.#p():this.#m(this.#n.shift()))}withdraw(t,e){this.#d(s=>s.asker===t&&s.question.id===e)}clear(t){this.#d(e=>e.asker===t)}#d(t){this.#n=this.#n.filter(s=>!t(s));let e=this.#n.length>0;this.#o&&t(this.#o)?this.#m(e?N:null):this.#o===N&&!e?this.#m(null):this.#p()}#g(t){let{onAnswer:e}=this.#o;this.#m(this.#n.shift()??null),e(t)}#m(t){let e=zt();this.#o=t,this.#r?.remove(),this.#r=t&&this.#b(t.question);let s=t?this.#e(t.asker,t.question):this.#e();clearInterval(this.#u),this.#r&&(this.#l=e instanceof HTMLIFrameElement?Lt:Q,this.#u=setInterval(()=>this.#w(),qt),this.#i.append(this.#r),(t.question.kind!=="approve"&&e===s||!e||e===document.body)&&this.#r.focus(),this.#y()),this.#p()}#b(t){let{title:e,body:s,answers:n}=tt[t.kind],r=o("h2",{},...e(t));this.#c=o("span",{class:"more"}),this.#a=n.map(([h,l],c)=>{let y=o("button",{type:"button",text:h,class:c?"":"main"});return y.addEventListener("click",()=>this.#f&&this.#g(l)),y});let a=o("section",{class:"question",part:"question",role:"alertdialog","aria-label":r.textContent,tabindex:"-1"},o("div",{class:"asker"},t.server?R(t):"",this.#c),r,...s(t),o("div",{class:"buttons"},...this.#a));return a.addEventListener("keydown",h=>{h.key==="Escape"&&(h.stopPropagation(),this.#g(n.at(-1)[1]))}),a}#p(){let t=this.#n.length,e=t+(this.#o&&this.#o!==N?1:0);this.#r&&(this.#c.textContent=t?`and ${t} more`:""),this.#t.toggleAttribute("data-asking",!!this.#r),this.#s(e)}#v(){this.#f||this.#y()}#y(){this.#h=performance.now(),this.#w()}#w(){let t=performance.now();(document.hidden||!document.hasFocus())&&(this.#h=t),this.#f=t-this.#h>=this.#l;for(let e of this.#a)e.ariaDisabled=String(!this.#f)}};var nt=matchMedia("(prefers-color-scheme: dark)"),d=new Map,$=new Map,O=new Set;function b(i,t,e,s=!1){let n=new CustomEvent(t,{bubbles:!0,composed:!0,cancelable:s,detail:e});return(i??document).dispatchEvent(n),n.defaultPrevented}var m=(i,t)=>f.notify({do:"place",view:i,value:t}),z=class extends S{static observedAttributes=["view"];#t=null;get placed(){return!0}connectedCallback(){this.#i(this.getAttribute("view"))}disconnectedCallback(){super.disconnectedCallback(),this.#i(null)}attributeChangedCallback(t,e,s){this.isConnected&&this.#i(s)}#i(t){if(t!==this.#t&&(this.#t&&d.get(this.#t)===this&&(d.delete(this.#t),v.drop(f,this.#t),m(this.#t,"gone")),this.#t=t,!!t)){if(d.has(t)){this.note("This View is shown elsewhere on this page.");return}d.set(t,this),this.note("Opening…"),m(t,document.hidden?"free":"take")}}},_=class extends HTMLElement{connectedCallback(){O.add(this);for(let t of $.keys())this.place(t)}disconnectedCallback(){O.delete(this)}place(t){d.has(t)||this.append(o("transom-view",{view:t}))}},_t={offer({new:i,...t}){let{view:e}=t;$.set(e,t);let[s]=O;d.has(e)?m(e,"free"):i&&b(s,"opened",t),d.has(e)||s?.place(e)},elsewhere({view:i}){d.get(i)?.note("This View is open in another tab or window.",{"Show it here":()=>m(i,"again")})},absent({view:i,reason:t,again:e}){let s=d.get(i);$.delete(i),s?.note(`This View was closed: ${t}.`,e?{"Open again":()=>m(i,"again")}:{}),b(s,"closed",{view:i,reason:t}),O.has(s?.parentElement)&&s.remove()}},W=o("div",{id:"transom-questions"}),V=new M(W,(i,t)=>v.pointAt(f,t?.view)),p=new Map,Wt={ask(i,t,e){let{id:s,do:n,...r}=t,a=new AbortController,h=c=>p.delete(s)&&e(c);p.set(s,a);let l={...r,answer:h,withdrawn:a.signal};b(d.get(t.view),"approval",l,!0)||p.delete(s)&&(W.isConnected||document.body.append(W),V.ask(i,t,e))},withdraw(i,t){p.get(t)?.abort(),p.delete(t),V.withdraw(i,t)},clear(i){for(let t of[...p.keys()])this.withdraw(i,t);V.clear(i)}};function Ft(){let{colorScheme:i}=getComputedStyle(document.documentElement);return(i.includes("light")&&i.includes("dark")?nt.matches:i.includes("dark"))?"dark":"light"}var st="";function F(i){let t=Ft();(i||t!==st)&&f.notify(J({theme:t})),st=t}var it=i=>i==="unknown"?"You are not signed in, or this page may not show Views.":`${i}.`,v=new T(i=>d.get(i)??document.createElement("transom-view")),f=new A(0,{url:new URL("socket",import.meta.url).href.replace("http","ws"),token:""},{views:v,questions:Wt,onMessage:i=>_t[i.do]?.(i),onFresh(){$.clear();for(let i of d.keys())m(i,document.hidden?"free":"take")},onState({state:i},t){if(i==="connected")F(!0);else if(i==="reconnecting")b(document,"problem",{kind:"connection",message:"No connection. Trying again…"});else if(i==="over"){for(let e of d.values())e.note(it(t));b(document,"problem",{kind:"over",message:it(t)})}}});addEventListener("resize",()=>v.resized());addEventListener("keydown",({key:i})=>{i==="Escape"&&v.fullscreen?.setMode("inline")});addEventListener("pagehide",()=>f.link.leave());addEventListener("pageshow",({persisted:i})=>i&&location.reload());addEventListener("online",()=>f.link.hurry());document.addEventListener("visibilitychange",()=>f.link.hurry());nt.addEventListener("change",()=>F());new MutationObserver(()=>F()).observe(document.documentElement,{attributes:!0});customElements.define("transom-view",z);customElements.define("transom-stage",_);
