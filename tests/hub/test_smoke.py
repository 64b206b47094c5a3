import numpy as np
import attnhub
Q=np.zeros((1,3,2,4),np.float32)
def test_x(install):
    install("acme","return [make('acme_one'), make('acme_two', claim('nan_propagation bias', quadratic=(frozenset(),)))]")
    print(attnhub.backends())
    h=attnhub.get(); print(h, h(Q,Q,Q))
    print(h.explain(Q,Q,Q))
    print(h(Q,Q,Q,bias=np.zeros((1,1,1,1))))
    print(h.explain(Q,Q,Q,logits_soft_cap=2.))
    try: h(Q,Q,Q,logits_soft_cap=2.)
    except Exception as e: print(type(e),e)
    try: attnhub.get(backend="acme_on")(Q,Q,Q,logits_soft_cap=2.)
    except Exception as e: print(type(e),e)
    try: attnhub.get(backend="acme_one")(Q,Q,Q,logits_soft_cap=2.)
    except Exception as e: print(type(e),e)
    try: attnhub.get("tpu")(Q,Q,Q)
    except Exception as e: print(type(e),e)
    print(attnhub.get("tpu",fallback="cpu")(Q,Q,Q))
